// TCP flows between hosts that come and go: at random, as independent users begin them, or in
// rounds in which every source sends to every destination at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/flows/flow_sizes.hpp"
#include "sim/flows/tcp_receiver.hpp"
#include "sim/flows/tcp_sender.hpp"
#include "sim/network.hpp"

namespace ina::sim {

struct TrafficConfig {
    TcpConfig tcp;
    std::int64_t start_ns = 0;
    std::int64_t stop_ns = kNever;  // no flow begins then, or later
    std::uint64_t most_flows = UINT64_MAX;
    // Poisson arrivals, from a random source to a random destination; 0: rounds.
    double mean_gap_ns = 0;
    std::uint64_t rounds = 1;
    std::int64_t period_ns = 0;  // from round to round; 0: a round begins when the last is over
};

struct FlowRecord {
    std::uint64_t number = 0;  // in the order of their beginnings
    std::uint32_t source = 0;  // which of the traffic's
    std::uint32_t destination = 0;
    std::int64_t bytes = 0;
    std::int64_t started_ns = 0;
    std::int64_t done_ns = -1;  // the receiver had the last byte; -1: it was given up
    std::uint64_t segments = 0;
    std::uint64_t retransmissions = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t marked_packets = 0;  // that the receiver got
};

class Traffic final : public Element {
  public:
    // The hosts are the network's. Throws std::invalid_argument: there is nobody to send to.
    Traffic(Network *network, const std::string &name, const TrafficConfig &config, FlowSizes sizes,
            std::vector<Host *> sources, std::vector<Host *> destinations);

    ~Traffic() override;

    void on_event(std::uint64_t what) override;

    std::uint64_t started_flows() const { return started_; }
    std::size_t active_flows() const { return active_; }
    // Of flows whose sender knows that all has arrived, or has given up, since the last call.
    std::vector<FlowRecord> take_records() { return std::exchange(records_, {}); }
    // Bytes that receivers have of the flows that are under way: by the flow's number.
    std::vector<std::pair<std::uint64_t, std::int64_t>> progress() const;
    // The sender of an active flow; null: it is none.
    const TcpSender *sender(std::uint64_t number) const;

  private:
    struct Flow;

    void begin(std::uint32_t source, std::uint32_t destination);
    void begin_round();
    void next_arrival();
    void settle(std::uint32_t place);
    void reap();

    Network *const network_;
    const TrafficConfig config_;
    const FlowSizes sizes_;
    const std::vector<Host *> sources_;
    const std::vector<Host *> destinations_;
    Stream random_;
    TimerBase timers_;

    std::vector<std::unique_ptr<Flow>> flows_;  // by place; null: free
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> ended_;  // to be freed once none of their code runs
    std::vector<FlowRecord> records_;
    std::uint64_t started_ = 0;
    std::uint64_t rounds_begun_ = 0;
    std::size_t active_ = 0;
    double gap_rest_ns_ = 0;  // the fractions of nanoseconds that gaps have left
};

}  // namespace ina::sim
