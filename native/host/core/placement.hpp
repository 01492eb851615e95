// Which lanes a tensor runs on. Depends only on what was submitted before, so all workers, and all
// shares of one worker, come to the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "host/core/exponent_history.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

struct Place {
    std::uint64_t chunks = 0;
    std::uint32_t first_lane = 0;  // of chunk 0
    std::uint32_t lane_shift = 0;  // chunk i is on lane (first_lane + (i << lane_shift)) mod W
    std::shared_ptr<ExponentHistory> history;  // null: the tensor takes no guesses
    std::uint32_t first_block = 0;             // in the history

    // From a chunk to the next one on its lane.
    std::uint32_t step(std::uint32_t window) const { return window >> lane_shift; }
    // Lanes that have a part of it, with its first chunks.
    std::uint32_t lanes(std::uint32_t window) const {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, step(window)));
    }
    std::uint32_t lane_of(std::uint32_t chunk) const { return first_lane + (chunk << lane_shift); }
};

class Placement {
  public:
    // guesses: exponents of small tensors may be guessed from those of earlier ones.
    Placement(std::uint32_t window, bool guesses) : window_(window), guesses_(guesses) {}

    // Of the next tensor, which is not empty and has so many chunks, in rounds of this shape.
    Place next(const TensorRequest &request, Shape shape, std::uint64_t chunks) {
        Place place;
        place.chunks = chunks;
        // Scatters have the even lanes and gathers the odd ones: both have some at any time.
        const bool is_half = shape != Shape::kSum && window_ > 1;
        place.lane_shift = is_half ? 1 : 0;
        const std::uint32_t lanes = place.step(window_);
        std::uint32_t &next_turn = next_turn_[static_cast<std::size_t>(shape)];
        std::uint64_t turn = next_turn;
        std::uint64_t taken = chunks;
        if (guesses_ && is_float(request.type) && chunks <= lanes) {
            const auto [history, is_new] =
                histories_.find(request, static_cast<std::uint32_t>(chunks), lanes, next_turn);
            place.history = history;
            place.first_block = history->take_turn();
            turn = history->turn_of(place.first_block);
            taken = is_new ? history->lanes() : 0;
        }
        const std::uint32_t first = is_half && shape == Shape::kGather ? 1 : 0;
        place.first_lane = static_cast<std::uint32_t>(turn % lanes << place.lane_shift) + first;
        next_turn = static_cast<std::uint32_t>((next_turn + taken) % lanes);
        return place;
    }

  private:
    std::uint32_t window_;
    bool guesses_;
    // By shape: of the lanes that it may have, the one on which the next tensor begins.
    std::array<std::uint32_t, 3> next_turn_{};
    ExponentHistories histories_;
};

}  // namespace ina::host
