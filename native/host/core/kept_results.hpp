// The newest result of each lane, for when a job has to go on without the switch.
//
// A lane is stop-and-wait, so when the data path stops, two workers differ in a lane by one result
// at most: none gets the result of s + W before all have sent it, which none does before it has the
// result of s. The newest result of each lane is therefore all that one worker may have and another
// lack; it lies in its tensor while that is pending, and is kept here afterwards, or all along
// where the worker's tensor does not get it. Once it has been handed on, all workers have the same
// chunks done, and the inputs of the others are whole: results are written only when they are
// accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/core/lane.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

using Tensors = std::unordered_map<std::uint64_t, Tensor>;  // by id; pointers to them stay valid

class KeptResults {
  public:
    // lanes 0: keeps none but those in their tensors.
    KeptResults(std::uint32_t lanes, std::size_t values_bytes)
        : values_bytes_(values_bytes), memory_(values_bytes * lanes) {}

    // A tensor comes whose chunks have so many bytes: packed, more than a packet's values.
    void make_room(std::size_t chunk_bytes) {
        if (memory_.empty() || chunk_bytes <= values_bytes_) return;
        const std::size_t lanes = memory_.size() / values_bytes_;
        std::vector<std::uint8_t> wider(chunk_bytes * lanes);
        for (std::size_t i = 0; i < lanes; ++i) {
            std::memcpy(wider.data() + chunk_bytes * i, memory_.data() + values_bytes_ * i,
                        values_bytes_);
        }
        memory_ = std::move(wider);
        values_bytes_ = chunk_bytes;
    }

    // What a round on a lane brought.
    enum class Brought : std::uint8_t {
        kNoSums,  // an exponent, or halves
        kSums,    // that are where place() said
        kBare,    // that they are made, and none of them
    };

    // Where the sums of lane `index` go, `gets` saying whether the worker's tensor does. Null:
    // nobody wants them here.
    std::uint8_t *place(const Lane &lane, std::uint32_t index, bool gets) {
        if (gets) return lane.tensor->chunk_out(lane.chunk);
        return memory_.empty() ? nullptr : memory_.data() + values_bytes_ * index;
    }

    // Lane `index` has accepted a result of its chunk. has_more: the tensor has more chunks on the
    // lane.
    void remember(Lane &lane, std::uint32_t index, bool has_more, Brought brought, bool gets) {
        const Tensor &tensor = *lane.tensor;
        lane.accepted = {tensor.request.id, lane.chunk, 0, Lane::Kept::kNowhere};
        if (brought == Brought::kNoSums) return;
        const std::size_t bytes = tensor.chunk_bytes(lane.chunk);
        lane.accepted.bytes = static_cast<std::uint32_t>(bytes);
        if (brought == Brought::kBare) return;
        if (gets) lane.accepted.kept = Lane::Kept::kInTensor;
        // While the lane has more chunks of it, the tensor stays and its memory is the caller's
        // promise.
        if (memory_.empty() || (gets && has_more)) return;
        lane.accepted.kept = Lane::Kept::kHere;
        if (!gets) return;
        std::memcpy(memory_.data() + values_bytes_ * index, tensor.chunk_out(lane.chunk), bytes);
    }

    LaneResult newest(const Lane &lane, std::uint32_t index, std::uint32_t window,
                      const Tensors &tensors) const {
        LaneResult result;
        result.accepted = lane.has_history;
        if (!lane.has_history) return result;
        const Lane::Accepted &accepted = lane.accepted;
        result.exponent_only = accepted.bytes == 0;
        result.seq = lane.seq - window;
        result.tensor = accepted.tensor;
        result.chunk = accepted.chunk;
        if (result.exponent_only) return result;
        const std::uint8_t *values = nullptr;
        if (accepted.kept == Lane::Kept::kHere) {
            values = memory_.data() + values_bytes_ * index;
        } else if (accepted.kept == Lane::Kept::kNowhere) {
            return result;
        } else if (const auto found = tensors.find(accepted.tensor); found != tensors.end()) {
            values = found->second.chunk_out(accepted.chunk);
        }
        if (values != nullptr) result.data.assign(values, values + accepted.bytes);
        return result;
    }

  private:
    std::size_t values_bytes_;  // of a chunk, at most
    std::vector<std::uint8_t> memory_;
};

}  // namespace ina::host
