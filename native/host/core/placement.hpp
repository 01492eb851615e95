// Which lanes a tensor runs on. Depends only on what was submitted before, so all workers, and all
// shares of one worker, come to the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "host/core/exponent_history.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

struct Place {
    std::uint64_t chunks = 0;
    std::uint32_t first_lane = 0;  // of chunk 0; chunk i is on lane (first_lane + i) mod W
    std::shared_ptr<ExponentHistory> history;  // null: the tensor takes no guesses
    std::uint32_t first_block = 0;             // in the history

    // Lanes that have a part of it, from first_lane on.
    std::uint32_t lanes(std::uint32_t window) const {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, window));
    }
};

class Placement {
  public:
    // guesses: exponents of small tensors may be guessed from those of earlier ones.
    Placement(std::uint32_t window, bool guesses) : window_(window), guesses_(guesses) {}

    // Of the next tensor, which is not empty and has so many values in a chunk.
    Place next(const TensorRequest &request, std::uint32_t values) {
        Place place;
        place.chunks = (request.elems + values - 1) / values;
        place.first_lane = first_lane_;
        std::uint64_t lanes_taken = place.chunks;
        if (guesses_ && is_float(request.type) && place.chunks <= window_) {
            const auto [history, is_new] =
                histories_.find(request.type, request.elems,
                                static_cast<std::uint32_t>(place.chunks), window_, first_lane_);
            place.history = history;
            place.first_block = history->take_turn();
            place.first_lane = history->lane_of(place.first_block);
            lanes_taken = is_new ? history->lanes() : 0;
        }
        first_lane_ = static_cast<std::uint32_t>((first_lane_ + lanes_taken) & (window_ - 1));
        return place;
    }

  private:
    std::uint32_t window_;
    bool guesses_;
    std::uint32_t first_lane_ = 0;  // of the next tensor
    ExponentHistories histories_;
};

}  // namespace ina::host
