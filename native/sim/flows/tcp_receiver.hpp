// The end of a TCP connection that takes the data: puts it in order, acknowledges it (RFC 5681,
// with SACK, RFC 2018), and tells which of it was marked: until the sender has answered (RFC 3168),
// or for each packet, as DCTCP wants it (RFC 8257, 3.2).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/flows/tcp_config.hpp"
#include "sim/flows/tcp_segment.hpp"
#include "sim/flows/timer.hpp"
#include "sim/host.hpp"

namespace ina::sim {

// A connection, as both of its ends know it. There is no handshake: it is one of those that are
// kept open, and has been idle.
struct TcpConnection {
    Peer sender;
    Peer receiver;
    std::uint32_t first_sequence = 0;  // of the data
    std::uint32_t peer_sequence = 0;   // of the receiver, who sends none
    std::int64_t bytes = 0;            // of data
};

// How much a window's 16 bits are shifted (RFC 7323).
inline constexpr std::uint32_t kWindowShift = 8;

class TcpReceiver final : public Endpoint {
  public:
    TcpReceiver(FramePool *frames, Host *host, const TcpConfig &config,
                const TcpConnection &connection, TimerBase *timers, std::uint32_t place,
                std::uint32_t which);

    void receive(Frame frame) override;
    void on_timer(std::uint64_t number) {
        if (timer_.goes_off(number)) acknowledge();
    }

    bool has_all() const { return next_ == connection_.bytes; }
    std::int64_t next() const { return next_; }
    std::uint64_t marked_packets() const { return marked_packets_; }
    std::uint64_t repeated_packets() const { return repeated_packets_; }

  private:
    struct Range {
        std::int64_t begin;
        std::int64_t end;
    };

    void note_marks(const TcpSegment &segment);
    void keep(Range range);
    void acknowledge();

    FramePool *const frames_;
    Host *const host_;
    const TcpConfig config_;
    const TcpConnection connection_;
    Timer timer_;  // a delayed acknowledgement

    std::int64_t next_ = 0;      // all before this offset is there
    std::vector<Range> apart_;   // what else is; the newest first, as SACK tells it
    std::uint32_t unacked_ = 0;  // segments in order since the last acknowledgement
    bool echo_ = false;
    std::uint64_t marked_packets_ = 0;
    std::uint64_t repeated_packets_ = 0;
};

}  // namespace ina::sim
