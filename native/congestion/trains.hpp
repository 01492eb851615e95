// How fast results come that were sent together: what the slowest link on their way lets through.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ina::congestion {

// Of groups of results that follow each other, the fastest. It tells more than the rate of a round
// trip, in which a window that is small leaves the links idle most of the time.
class Trains {
  public:
    // A round begins with so many in flight.
    void begin(std::uint32_t in_flight) {
        group_ = std::clamp(in_flight / kGroups, kLeastGroup, kLargestGroup);
        in_group_ = 0;
        from_ns_ = 0;
        rate_ = 0.0;
    }
    void answered(std::int64_t now_ns) {
        if (from_ns_ == 0) {
            from_ns_ = now_ns;
            return;
        }
        if (++in_group_ < group_) return;
        // Those that are read at once say nothing.
        if (now_ns > from_ns_) {
            rate_ = std::max(rate_,
                             static_cast<double>(group_) / static_cast<double>(now_ns - from_ns_));
        }
        from_ns_ = now_ns;
        in_group_ = 0;
    }
    // Results a ns; 0: none is known in this round.
    double rate() const { return rate_; }

  private:
    static constexpr std::uint32_t kGroups = 4;  // in a round, at least
    static constexpr std::uint32_t kLeastGroup = 3;
    static constexpr std::uint32_t kLargestGroup = 16;

    std::uint32_t group_ = kLeastGroup;
    std::uint32_t in_group_ = 0;
    std::int64_t from_ns_ = 0;
    double rate_ = 0.0;
};

}  // namespace ina::congestion
