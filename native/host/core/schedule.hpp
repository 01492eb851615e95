// What a lane sends next, after which result. Dense: each W-th chunk of a tensor, from the lane's
// first on, and then the next tensor's. All workers come to the same, and a lane says in each
// packet what it knows of the next one (its exponent): so what follows is known a packet ahead.
#pragma once

#include <cstdint>

#include "host/core/lane.hpp"

namespace ina::host {

class Schedule {
  public:
    static constexpr std::uint64_t kNone = UINT64_MAX;

    explicit Schedule(std::uint32_t window) : window_(window) {}

    // The lane's chunks of a tensor from this one on; at least one.
    std::uint64_t count_from(const Place &place, std::uint64_t chunk) const {
        return (place.chunks - chunk + window_ - 1) / window_;
    }
    template <typename Function>
    void each_from(const Place &place, std::uint64_t chunk, const Function &function) const {
        for (; chunk < place.chunks; chunk += window_) function(chunk);
    }

    // The chunk that follows the lane's, once that has its sums; kNone: the lane is done with the
    // tensor.
    std::uint64_t next(const Lane &lane) const {
        const std::uint64_t chunk = lane.chunk + window_;
        return chunk < lane.tensor->place.chunks ? chunk : kNone;
    }

    // What values the lane sends after the packet that it is about to send, if all goes as it
    // should.
    struct Ahead {
        const Tensor *tensor;  // null: not known yet
        std::uint64_t chunk;
    };
    Ahead ahead(const Lane &lane) const {
        if (!lane.has_values()) return {lane.tensor, lane.chunk};
        if (const std::uint64_t chunk = next(lane); chunk != kNone) return {lane.tensor, chunk};
        if (lane.queue.empty()) return {nullptr, 0};
        return {lane.queue.front().tensor, lane.queue.front().first_chunk};
    }

  private:
    std::uint32_t window_;  // W
};

}  // namespace ina::host
