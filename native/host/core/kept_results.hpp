// The newest result of each lane, for when a job has to go on without the switch.
//
// A lane is stop-and-wait, so when the data path stops, two workers differ in a lane by one result
// at most: none gets the result of s + W before all have sent it, which none does before it has the
// result of s. The newest result of each lane is therefore all that one worker may have and another
// lack; it lies in its tensor while that is pending, and is kept here afterwards. Once it has been
// handed on, all workers have the same chunks done, and the inputs of the others are whole: results
// are written only when they are accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
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

    // Lane `index` has accepted a result of its chunk. has_more: the tensor has more chunks on the
    // lane. has_values: it brought sums that this rank gets.
    void remember(Lane &lane, std::uint32_t index, bool has_more, bool has_values) {
        const Tensor &tensor = *lane.tensor;
        lane.accepted = {tensor.request.id, lane.chunk, 0, false};
        if (!has_values) return;
        const std::size_t bytes = tensor.chunk_bytes(lane.chunk);
        lane.accepted.bytes = static_cast<std::uint32_t>(bytes);
        // While the lane has more chunks of it, the tensor stays and its memory is the caller's
        // promise.
        if (memory_.empty() || has_more) return;
        lane.accepted.kept = true;
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
        if (accepted.kept) {
            values = memory_.data() + values_bytes_ * index;
        } else if (const auto found = tensors.find(accepted.tensor); found != tensors.end()) {
            values = found->second.chunk_out(accepted.chunk);
        }
        if (values != nullptr) result.data.assign(values, values + accepted.bytes);
        return result;
    }

  private:
    std::size_t values_bytes_;  // of a packet
    std::vector<std::uint8_t> memory_;
};

}  // namespace ina::host
