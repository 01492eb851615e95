// How long flows are: drawn from a distribution that is given by some of its points, straight
// between them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "sim/random.hpp"

namespace ina::sim {

class FlowSizes {
  public:
    struct Point {
        double bytes;
        double share;  // of flows that are no longer
    };

    // Shares rise to 1, bytes are at least 1 and do not fall. One point alone: all are of that
    // size. Throws std::invalid_argument.
    explicit FlowSizes(std::vector<Point> points) : points_(std::move(points)) {
        if (points_.empty() || points_.back().share != 1) {
            throw std::invalid_argument("sizes of flows: the last share must be 1");
        }
        for (std::size_t i = 0; i < points_.size(); ++i) {
            const Point before = i == 0 ? Point{1, 0} : points_[i - 1];
            if (!(points_[i].bytes >= before.bytes && points_[i].share >= before.share)) {
                throw std::invalid_argument("sizes of flows: bytes and shares must not fall");
            }
        }
    }

    std::int64_t draw(Stream *random) const {
        if (points_.size() == 1) return static_cast<std::int64_t>(points_[0].bytes);
        const double share = random->uniform();
        std::size_t i = 0;
        while (points_[i].share < share) ++i;
        if (i == 0) return static_cast<std::int64_t>(points_[0].bytes);
        const Point &from = points_[i - 1];
        const Point &to = points_[i];
        const double part = (share - from.share) / (to.share - from.share);
        return static_cast<std::int64_t>(from.bytes + part * (to.bytes - from.bytes));
    }

  private:
    std::vector<Point> points_;
};

}  // namespace ina::sim
