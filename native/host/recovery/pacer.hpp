// When packets leave that a window allows: spread over time, so that a window does not go as one
// burst, which small queues on the way would not hold.
//
// What is sent again takes its turn of the pace, too. Where round trips are longer than timeouts
// there is always something to send again; so what is sent for the first time waits for at most
// kMostTurns gaps: half of the pace is kept for it, and all of it is exceeded by half at most.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "congestion/window.hpp"

namespace ina::host {

class Pacer {
  public:
    // When the next one may go; in the past where nothing holds it up.
    std::int64_t next_ns() const { return next_ns_; }
    // How many may go now; many, where nothing holds them up.
    std::size_t allowed(std::int64_t now_ns, const congestion::Pace &pace) const {
        if (pace.gap_ns <= 0) return SIZE_MAX;
        if (now_ns < next_ns_) return 0;
        const std::int64_t saved_ns = std::min(now_ns - next_ns_, most_saved_ns(pace));
        return 1 + static_cast<std::size_t>(saved_ns / pace.gap_ns);
    }
    // Whether nothing but the pace holds up what goes next. Then what a thread that wakes late has
    // missed of the pace is made up for: else a core that wakes it late each time would set the
    // rate.
    void holds_up(bool holds) { holds_up_ = holds; }
    // When the next one that was not sent before may go.
    std::int64_t first_copy_ns() const { return std::min(next_ns_, first_copy_ns_); }
    // A packet goes for the first time. share: of one with values, whose gap the pace tells.
    void sent(std::int64_t now_ns, const congestion::Pace &pace, double share) {
        charge(now_ns, pace, share);
        first_copy_ns_ = now_ns + kMostTurns * pace.gap_ns;
    }
    void sent_again(std::int64_t now_ns, const congestion::Pace &pace, double share) {
        charge(now_ns, pace, share);
    }

  private:
    static constexpr std::int64_t kMostTurns = 2;
    static constexpr std::int64_t kMostLateNs = 4'000'000;  // a time slice of another's

    // What was not used of the time counts as far as a burst goes, or a thread is late.
    std::int64_t most_saved_ns(const congestion::Pace &pace) const {
        const std::int64_t burst_ns = pace.gap_ns * (std::int64_t{pace.burst_packets} - 1);
        return holds_up_ ? std::max(burst_ns, kMostLateNs) : burst_ns;
    }

    void charge(std::int64_t now_ns, const congestion::Pace &pace, double share) {
        if (pace.gap_ns <= 0) {
            next_ns_ = 0;
            return;
        }
        const auto gap_ns = static_cast<std::int64_t>(static_cast<double>(pace.gap_ns) * share);
        next_ns_ = std::max(next_ns_, now_ns - most_saved_ns(pace)) + gap_ns;
    }

    std::int64_t next_ns_ = 0;
    std::int64_t first_copy_ns_ = 0;  // at the latest
    bool holds_up_ = false;
};

}  // namespace ina::host
