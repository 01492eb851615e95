// Claims that give way where others want the slots (slot_claims.hpp). A lane whose sum brought word
// that another job wanted its slot (WANTED) claims none for a while; each such time on end the
// while is twice as long, up to a limit. One that claimed and brought no such word claims again at
// once.
//
// What it says of a lane depends on that lane's results alone, one a round, in their order. These
// are the same for all workers of the job, a replay says what the result said, and so all workers
// say the same of each round: none claims a slot and waits in it for one who does not. That holds
// from a window's beginning on; who begins later than others agrees with them on a lane once that
// claims with all, and brings no word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "congestion/slot_claims.hpp"

namespace ina::congestion {

class LaneClaims final : public SlotClaims {
  public:
    // A lane claims none for at most 2^limit rounds on end.
    explicit LaneClaims(std::uint32_t limit = kUsualLimit) : limit_(std::min(limit, kMostLimit)) {}

    bool claims(std::uint32_t lane) const override {
        return lane >= lanes_.size() || lanes_[lane].left == 0;
    }

    void answered(std::uint32_t lane, bool wanted) override {
        if (lane >= lanes_.size()) lanes_.resize(lane + 1);
        Lane &one = lanes_[lane];
        if (one.left > 0) {
            --one.left;  // it claimed none: if it says so, then of no slot of its own
        } else if (wanted) {
            one.left = std::uint32_t{1} << one.doublings;
            one.doublings = std::min(one.doublings + 1, limit_);
        } else {
            one.doublings = 0;
        }
    }

  private:
    static constexpr std::uint32_t kUsualLimit = 6;
    static constexpr std::uint32_t kMostLimit = 31;

    struct Lane {
        std::uint32_t left = 0;       // rounds in which it claims none
        std::uint32_t doublings = 0;  // of the next while
    };

    const std::uint32_t limit_;
    std::vector<Lane> lanes_;  // those beyond have had no result
};

}  // namespace ina::congestion
