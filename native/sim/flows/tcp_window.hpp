// How many bytes a TCP sender may have in flight. An algorithm is a class behind this interface, in
// a header of its own. What they share is RFC 5681: slow start below a threshold, and one segment
// after a timeout. Integers and plain arithmetic of doubles only, as in random.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ina::sim {

struct TcpAck {
    std::int64_t now_ns = 0;
    std::int64_t bytes = 0;         // that arrived, as is known by this acknowledgement
    std::int64_t acknowledged = 0;  // all before this offset has arrived
    std::int64_t next = 0;          // offset of what has not been sent yet
    std::int64_t srtt_ns = 0;
    bool echo = false;         // of ECN
    bool is_limited = false;   // the window was used up
    bool in_recovery = false;  // of losses
};

class TcpWindow {
  public:
    TcpWindow(std::int64_t mss_bytes, std::int64_t initial_segments)
        : mss_(static_cast<double>(mss_bytes)),
          window_(mss_ * static_cast<double>(initial_segments)) {}
    virtual ~TcpWindow() = default;
    TcpWindow(const TcpWindow &) = delete;
    TcpWindow &operator=(const TcpWindow &) = delete;

    // Whether it has given way to ECN, of which the peer is told by CWR; once for a window of data.
    bool on_ack(const TcpAck &ack) {
        observe(ack);
        const bool gives_way = ack.echo && !ack.in_recovery && ack.acknowledged > marked_until_;
        if (gives_way) {
            marked_until_ = ack.next;
            window_ = threshold_ = lowered(true);
        }
        // What ECN asks to slow down does not speed up.
        if (ack.echo || ack.in_recovery || !ack.is_limited) return gives_way;
        if (window_ < threshold_) {
            window_ += static_cast<double>(ack.bytes);
        } else {
            avoid(ack);
        }
        return gives_way;
    }
    // Losses were found; once for what was in flight then.
    void on_loss() { window_ = threshold_ = lowered(false); }
    // `again`: by the same segment as before.
    void on_timeout(bool again) {
        if (!again) threshold_ = lowered(false);
        window_ = mss_;
        timed_out();
    }

    std::int64_t bytes() const { return static_cast<std::int64_t>(window_); }
    std::int64_t threshold_bytes() const { return static_cast<std::int64_t>(threshold_); }

  protected:
    // Each acknowledgement, before anything else.
    virtual void observe(const TcpAck &) {}
    // Congestion avoidance.
    virtual void avoid(const TcpAck &ack) = 0;
    // The window after a loss, or a mark: at least least().
    virtual double lowered(bool is_mark) = 0;
    virtual void timed_out() {}

    double least() const { return 2 * mss_; }

    const double mss_;
    double window_;  // bytes
    double threshold_ = 0x1p62;

  private:
    std::int64_t marked_until_ = -1;
};

}  // namespace ina::sim
