// When a round trip is over: once as many results have come as were in flight at its beginning.
// Unlike a clock it stands still while all wait for a late worker.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/window.hpp"

namespace ina::congestion {

class Rounds {
  public:
    // True: this answer is the last of a round.
    bool answered(const Answer &answer) {
        if (left_ == 0) left_ = std::max(answer.in_flight, 1u);
        return --left_ == 0;
    }
    // The next one begins with the next answer: what was sent before now is not asked any more.
    void begin(std::uint32_t in_flight) { left_ = std::max(in_flight, 1u); }

  private:
    std::uint32_t left_ = 0;
};

// Which share of a round's results were marked, as a moving average over rounds (RFC 8257, 3.3:
// DCTCP.Alpha).
class MarkShare {
  public:
    // weight: of the newest round; first: before any.
    explicit MarkShare(double weight, double first) : weight_(weight), share_(first) {}

    void answered(bool marked) {
        ++answers_;
        marked_ += marked;
    }
    void end_round() {
        if (answers_ == 0) return;
        const double newest = static_cast<double>(marked_) / static_cast<double>(answers_);
        share_ += weight_ * (newest - share_);
        answers_ = marked_ = 0;
    }
    double share() const { return share_; }

  private:
    const double weight_;
    double share_;
    std::uint64_t answers_ = 0;
    std::uint64_t marked_ = 0;
};

}  // namespace ina::congestion
