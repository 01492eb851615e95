// How long it takes until a thread that has slept is at work: some time at least, and then as
// chance has it, exponentially, for a core has something else to do or sleeps deeper now and then.
#pragma once

#include <cstdint>

#include "sim/random.hpp"

namespace ina::sim {

struct WakeConfig {
    std::int64_t least_ns = 0;
    std::int64_t jitter_ns = 0;  // on average so much more

    bool is_instant() const { return least_ns == 0 && jitter_ns == 0; }
};

class Waking {
  public:
    Waking(const WakeConfig &config, Stream random) : config_(config), random_(random) { next(); }

    // The same until next(): what wakes a thread that is waking changes nothing.
    std::int64_t now_takes_ns() const { return takes_ns_; }
    void next() {
        takes_ns_ = config_.least_ns;
        if (config_.jitter_ns == 0) return;
        const double more_ns = random_.exponential() * static_cast<double>(config_.jitter_ns);
        takes_ns_ += static_cast<std::int64_t>(more_ns);
    }

  private:
    WakeConfig config_;
    Stream random_;
    std::int64_t takes_ns_ = 0;
};

}  // namespace ina::sim
