// When packets leave that a window allows: spread over time, so that a window does not go as one
// burst, which small queues on the way would not hold.
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
        const std::int64_t saved = (now_ns - next_ns_) / pace.gap_ns;
        return 1 + static_cast<std::size_t>(std::min<std::int64_t>(saved, pace.burst_packets - 1));
    }
    // A packet goes; share: of one with values, whose gap that is.
    void sent(std::int64_t now_ns, const congestion::Pace &pace, double share) {
        if (pace.gap_ns <= 0) {
            next_ns_ = 0;
            return;
        }
        // What was not used of the time counts as far as a burst goes.
        const std::int64_t saved_ns = pace.gap_ns * (std::int64_t{pace.burst_packets} - 1);
        const auto gap_ns = static_cast<std::int64_t>(static_cast<double>(pace.gap_ns) * share);
        next_ns_ = std::max(next_ns_, now_ns - saved_ns) + gap_ns;
    }

  private:
    std::int64_t next_ns_ = 0;
};

}  // namespace ina::host
