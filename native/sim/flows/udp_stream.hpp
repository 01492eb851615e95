// Datagrams at a rate that nothing slows down, from one host to another: evenly spaced, or as a
// Poisson process.
#pragma once

#include <cstdint>
#include <string>

#include "sim/network.hpp"

namespace ina::sim {

// What a payload begins with: a number, and when it was sent.
inline constexpr std::uint32_t kStampBytes = 16;

struct UdpStreamConfig {
    double mean_gap_ns = 0;  // from the first bit of a datagram to that of the next; above 0
    bool is_poisson = false;
    std::uint32_t payload_bytes = 1472;  // at least kStampBytes
    std::uint8_t dscp = 0;
    std::int64_t start_ns = 0;
    std::int64_t stop_ns = kNever;
};

struct UdpStreamCounters {
    std::uint64_t sent_packets = 0;
    std::uint64_t received_packets = 0;
    std::uint64_t received_bytes = 0;  // of payload
    std::int64_t delay_ns = 0;         // of them, together
    std::int64_t longest_delay_ns = 0;
};

class UdpStream final : public Element, public Endpoint {
  public:
    // Throws std::invalid_argument.
    UdpStream(Network *network, const std::string &name, const UdpStreamConfig &config,
              Host *source, Host *destination);

    void on_event(std::uint64_t what) override;
    void receive(Frame frame) override;

    const UdpStreamCounters &counters() const { return counters_; }

  private:
    void put_next(std::int64_t from_ns);

    Network *const network_;
    const UdpStreamConfig config_;
    Host *const source_;
    Stream random_;
    Peer from_;
    Peer to_;
    double gap_rest_ns_ = 0;
    UdpStreamCounters counters_;
};

}  // namespace ina::sim
