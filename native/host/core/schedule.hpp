// What a lane sends next, after which result. All workers come to the same.
//
// Dense: each W-th chunk of a tensor (where it has half of the lanes, each W/2-th), from the lane's
// first on, and then the next tensor's; a lane says in each packet what it knows of the next one
// (its exponent): so what follows is known a packet ahead. A stream: the lane's first chunk, and
// then the one that each result names (block_finder.hpp); what lies between is zero on all workers.
#pragma once

#include <cstdint>

#include "host/core/lane.hpp"

namespace ina::host {

class Schedule {
  public:
    static constexpr std::uint64_t kNone = UINT64_MAX;

    explicit Schedule(std::uint32_t window, bool is_stream = false)
        : window_(window), is_stream_(is_stream) {}

    bool is_stream() const { return is_stream_; }

    // The lane's chunks of a tensor from this one on; at least one.
    std::uint64_t count_from(const Place &place, std::uint64_t chunk) const {
        const std::uint32_t step = place.step(window_);
        return (place.chunks - chunk + step - 1) / step;
    }
    template <typename Function>
    void each_from(const Place &place, std::uint64_t chunk, const Function &function) const {
        for (; chunk < place.chunks; chunk += place.step(window_)) function(chunk);
    }
    // The lane's chunk behind this one; kNone: it is the lane's last of the tensor.
    std::uint64_t after(const Place &place, std::uint64_t chunk) const {
        const std::uint64_t next = chunk + place.step(window_);
        return next < place.chunks ? next : kNone;
    }

    // The chunk that follows the lane's, once that has its sums; kNone: the lane is done with the
    // tensor. `named`: by the result, in a stream.
    std::uint64_t next(const Lane &lane, std::uint64_t named) const {
        return is_stream_ ? named : after(lane.tensor->place, lane.chunk);
    }
    // Whether a result may name this one as the lane's next. `own`: what this worker has said.
    bool may_follow(const Lane &lane, std::uint64_t named, std::uint64_t own) const {
        if (named > own) return false;
        if (named == kNone) return true;
        return named > lane.chunk && named < lane.tensor->place.chunks &&
               (named - lane.chunk) % lane.tensor->place.step(window_) == 0;
    }
    // How many chunks are done once the lane's is, and `next` follows.
    std::uint64_t done_before(const Lane &lane, std::uint64_t next) const {
        if (next == kNone) return count_from(lane.tensor->place, lane.chunk);
        return (next - lane.chunk) / lane.tensor->place.step(window_);
    }

    // What values the lane sends after the packet that it is about to send, if all goes as it
    // should.
    struct Ahead {
        const Tensor *tensor;  // null: not known yet
        std::uint64_t chunk;
    };
    Ahead ahead(const Lane &lane) const {
        if (!lane.has_values()) return {lane.tensor, lane.chunk};
        if (is_stream_) return {nullptr, 0};
        const std::uint64_t chunk = after(lane.tensor->place, lane.chunk);
        if (chunk != kNone) return {lane.tensor, chunk};
        if (lane.queue.empty()) return {nullptr, 0};
        return {lane.queue.front().tensor, lane.queue.front().first_chunk};
    }

  private:
    std::uint32_t window_;  // W
    bool is_stream_;
};

}  // namespace ina::host
