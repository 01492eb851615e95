// What waits for a link: drop tail, ECN marks, and two priorities. Lengths are bytes as on the
// wire, without the frame that is being sent.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/frame.hpp"
#include "sim/random.hpp"
#include "sim/ring.hpp"

namespace ina::sim {

enum class Marking : std::uint8_t {
    kNone,
    kStep,  // a frame that finds mark_bytes or more waiting (DCTCP, RFC 8257)
    kRed,   // by the average length (Floyd and Jacobson 1993)
};

struct QueueConfig {
    std::int64_t limit_bytes = INT64_MAX;  // a frame that finds no room is dropped
    Marking marking = Marking::kNone;
    std::int64_t mark_bytes = 0;
    // RED: below the least average nothing is marked, from the most on all; between, up to this
    // probability. What is not ECN-capable is dropped where another frame is marked.
    std::int64_t red_least_bytes = 0;
    std::int64_t red_most_bytes = 0;
    double red_probability = 0.1;
    double red_weight = 0.002;  // of the newest length in the average
    // Frames with a DSCP of at least this go first, always; 64: none do.
    std::uint32_t urgent_dscp = 64;
};

// The IP header's ECN field of an Ethernet frame; false: it is no whole IPv4 header.
bool is_ipv4(const Frame &frame);
std::uint8_t ecn_of(const Frame &frame);
std::uint8_t dscp_of(const Frame &frame);
// Sets Congestion Experienced, and mends the header's checksum (RFC 1624).
void mark(Frame &frame);

class Queue {
  public:
    Queue(const QueueConfig &config, Stream random) : config_(config), random_(random) {}

    struct Waiting {
        Frame frame;
        std::int64_t since_ns = 0;
    };

    // False: there is no room, or RED drops it; the frame stays the caller's. Counts what it marks.
    bool put(Frame &frame, std::int64_t now_ns, std::uint64_t *marked);
    // The next to be sent; there is one.
    Waiting take();
    const Waiting &next() const { return (urgent_.empty() ? others_ : urgent_).front(); }
    // What comes while the link is idle and nothing waits: it is not put here, but may be marked.
    void pass(Frame &frame, std::uint64_t *marked);

    bool empty() const { return urgent_.empty() && others_.empty(); }
    std::uint32_t packets() const {
        return static_cast<std::uint32_t>(urgent_.size() + others_.size());
    }
    std::int64_t bytes() const { return bytes_; }
    void clear();
    void set_config(const QueueConfig &config) { config_ = config; }
    const QueueConfig &config() const { return config_; }

  private:
    enum class Verdict : std::uint8_t { kPass, kMark, kDrop };
    Verdict judge(const Frame &frame);

    std::int64_t bytes_ = 0;
    Ring<Waiting> others_;
    Ring<Waiting> urgent_;
    QueueConfig config_;
    double average_bytes_ = 0;
    Stream random_;
};

}  // namespace ina::sim
