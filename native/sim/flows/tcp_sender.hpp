// The end of a TCP connection that sends: RFC 9293's data, RFC 5681's rules, RFC 6298's timer.
//
// A segment counts as lost once one that was sent three or more transmissions later has arrived, as
// SACK tells it; transmissions are numbered, so that what was sent again can be lost again. That is
// RFC 6675's threshold counted as in RFC 9002 (6.1.1), with RFC 8985's rule for what is ambiguous:
// an answer that comes sooner than any round trip is one to an earlier transmission. Left out: tail
// loss probes, proportional rate reduction, undoing of spurious timeouts. So losses at a flow's end
// wait for the timer, as they did in the papers that flows are compared with.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "sim/flows/tcp_config.hpp"
#include "sim/flows/tcp_receiver.hpp"
#include "sim/flows/tcp_segment.hpp"
#include "sim/flows/timer.hpp"
#include "sim/host.hpp"

namespace ina::sim {

struct TcpSenderCounters {
    std::uint64_t segments = 0;  // sent, all
    std::uint64_t retransmissions = 0;
    std::uint64_t recoveries = 0;  // times at which losses were found before a timeout
    std::uint64_t timeouts = 0;
    std::uint64_t ecn_reductions = 0;
};

class TcpSender final : public Endpoint {
  public:
    TcpSender(FramePool *frames, Host *host, const TcpConfig &config,
              const TcpConnection &connection, TimerBase *timers, std::uint32_t place,
              std::uint32_t which);

    void start() { send(); }
    void receive(Frame frame) override;
    void on_timer(std::uint64_t number) {
        if (timer_.goes_off(number)) time_out();
    }

    // All is acknowledged.
    bool is_done() const { return first_ == segments_; }
    bool has_given_up() const { return timeouts_on_end_ > config_.most_timeouts; }
    std::int64_t in_flight_bytes() const { return in_flight_; }
    std::int64_t srtt_ns() const { return srtt_ns_; }
    std::int64_t rto_ns() const;
    const TcpWindow &window() const { return *window_; }
    const TcpSenderCounters &counters() const { return counters_; }

  private:
    struct Sent {
        std::int64_t at_ns = 0;
        std::uint64_t transmission = 0;
        bool has_arrived = false;
        bool is_lost = false;
        bool is_repeated = false;
    };
    static constexpr std::uint64_t kLostAfter = 3;

    std::int64_t bytes_of(std::int64_t segment) const;
    std::int64_t segment_at(std::uint32_t sequence) const;
    Sent &sent(std::int64_t segment) { return sent_[static_cast<std::size_t>(segment - first_)]; }
    void arrived(std::int64_t segment);
    void take_sample(std::int64_t rtt_ns);
    void find_losses();
    void lose(std::int64_t segment);
    std::int64_t first_lost();
    void send();
    void transmit(std::int64_t segment);
    void time_out();

    FramePool *const frames_;
    Host *const host_;
    const TcpConfig config_;
    const TcpConnection connection_;
    const std::unique_ptr<TcpWindow> window_;
    Timer timer_;  // retransmission
    TcpSenderCounters counters_;

    // Data goes in segments of one size, but for the last; here they go by their number.
    const std::int64_t segments_;
    std::int64_t first_ = 0;      // that is not acknowledged
    std::int64_t next_ = 0;       // that was never sent
    std::deque<Sent> sent_;       // from first_ to next_
    std::int64_t apart_ = 0;      // that have arrived behind a hole
    std::int64_t lost_ = 0;       // and are to be sent again
    std::int64_t look_ = 0;       // none before this one is lost
    std::int64_t in_flight_ = 0;  // bytes that have neither arrived nor been lost
    std::int64_t peer_window_;    // bytes

    std::uint64_t transmissions_ = 0;
    std::uint64_t newest_arrived_ = 0;  // of them
    std::int64_t recovery_end_ = 0;     // losses before it are of one time
    bool in_recovery_ = false;
    bool is_limited_ = false;  // by the window, when it last could send
    bool tells_cwr_ = false;

    std::int64_t newly_arrived_bytes_ = 0;  // by the acknowledgement in hand, as the next two
    std::uint64_t sample_of_ = 0;           // the newest transmission, of those sent once
    std::int64_t sample_ns_ = 0;
    std::int64_t srtt_ns_ = 0;  // 0: no sample yet
    std::int64_t rttvar_ns_ = 0;
    std::int64_t shortest_ns_ = kNever;
    std::uint32_t timeouts_on_end_ = 0;
};

}  // namespace ina::sim
