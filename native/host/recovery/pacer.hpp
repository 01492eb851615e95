// When packets leave that a window allows: spread over time, so that a window does not go as one
// burst, which small queues on the way would not hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/window.hpp"

namespace ina::host {

class Pacer {
  public:
    // When the next one may go; in the past where nothing holds it up.
    std::int64_t next_ns() const { return next_ns_; }
    // A packet goes for the first time. Copies are not held up: there are few of them.
    void sent(std::int64_t now_ns, const congestion::Pace &pace) {
        if (pace.gap_ns <= 0) {
            next_ns_ = 0;
            return;
        }
        // What was not used of the time counts as far as a burst goes.
        const std::int64_t saved_ns = pace.gap_ns * (std::int64_t{pace.burst_packets} - 1);
        next_ns_ = std::max(next_ns_, now_ns - saved_ns) + pace.gap_ns;
    }

  private:
    std::int64_t next_ns_ = 0;
};

}  // namespace ina::host
