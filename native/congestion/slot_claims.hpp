// Which lanes' next packets claim slots that jobs share: beside the window of an algorithm, and
// told apart from it. Where jobs share no slots, it makes no difference.
#pragma once

#include <cstdint>

namespace ina::congestion {

class SlotClaims {
  public:
    virtual ~SlotClaims() = default;
    // A result with values of this lane was accepted; the window is told of it next. wanted: while
    // its sum was gathered in a slot, another job found that taken (WANTED). All workers of the job
    // see the same, replays included.
    virtual void answered(std::uint32_t lane, bool wanted) = 0;
    // Whether the lane's next packet may claim a slot; otherwise it goes to the aggregator alone.
    // All workers of a job should say the same of a lane: who claims a slot waits in it for those
    // who do not.
    virtual bool claims(std::uint32_t lane) const = 0;
};

}  // namespace ina::congestion
