// The newest result of each lane, for when a job has to go on without the switch.
//
// A lane is stop-and-wait, so when the data path stops, two workers differ in a lane by one result
// at most: none gets the result of s + W before all have sent it, which none does before it has the
// result of s. The newest result of each lane is therefore all that one worker may have and another
// lack; it lies in its tensor while that is pending, and is kept here afterwards, or all along
// where the worker's tensor does not get it. But of a scatter the owner alone ever has the sum; if
// it is the owner that lacks it, the sum is made once more of what each worker gave, which is kept
// in the result's place. Once all has been handed on, all workers have the same chunks done, and
// the inputs of the others are whole: results are written only when they are accepted.
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
        : values_bytes_of_packet_(values_bytes), values_bytes_(values_bytes),
          memory_(values_bytes * lanes) {}

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

    // Where the sums of lane `index` go. Null: nobody wants them here.
    std::uint8_t *place(const Lane &lane, std::uint32_t index) {
        if (lane.gets()) return lane.tensor->chunk_out(lane.chunk);
        const bool are_whole = lane.shape() == Shape::kSum && lane.moves_values();
        return memory_.empty() || !are_whole ? nullptr : memory_.data() + values_bytes_ * index;
    }

    // Lane `index` has accepted a result of its chunk. has_more: the tensor has more chunks on the
    // lane. words: of the lane's packet.
    void remember(Lane &lane, std::uint32_t index, bool has_more, Brought brought, bool non_finite,
                  const std::uint8_t *words) {
        Lane::Accepted &accepted = lane.accepted;
        accepted = {lane.tensor->request.id, lane.chunk};
        if (brought == Brought::kNoSums) return;
        accepted.has_sums = true;
        accepted.non_finite = non_finite;
        if (lane.shape() == Shape::kScatter && !lane.gets()) {
            keep(accepted, index, Lane::Kept::kOwnPart, words, values_bytes_of_packet_);
            return;
        }
        const std::uint8_t *const values = in_tensor(*lane.tensor, lane.chunk);
        const std::size_t bytes = lane.tensor->chunk_bytes(lane.chunk);
        if (values == nullptr) {
            if (brought == Brought::kBare || memory_.empty()) return;
            accepted.kept = Lane::Kept::kHere;  // by place()
            accepted.bytes = static_cast<std::uint32_t>(bytes);
        } else if (has_more || memory_.empty()) {
            // As long as the tensor stays its memory is the caller's promise.
            accepted.kept = Lane::Kept::kInTensor;
            accepted.bytes = static_cast<std::uint32_t>(bytes);
        } else {
            keep(accepted, index, Lane::Kept::kHere, values, bytes);
        }
    }

    LaneResult newest(const Lane &lane, std::uint32_t index, std::uint32_t window,
                      const Tensors &tensors) const {
        LaneResult result;
        result.accepted = lane.has_history;
        if (!lane.has_history) return result;
        const Lane::Accepted &accepted = lane.accepted;
        result.exponent_only = !accepted.has_sums;
        result.non_finite = accepted.non_finite;
        result.seq = lane.seq - window;
        result.tensor = accepted.tensor;
        result.chunk = accepted.chunk;
        const std::uint8_t *values = nullptr;
        if (accepted.kept == Lane::Kept::kInTensor) {
            const auto found = tensors.find(accepted.tensor);
            if (found != tensors.end()) values = in_tensor(found->second, accepted.chunk);
        } else if (accepted.kept == Lane::Kept::kHere) {
            values = memory_.data() + values_bytes_ * index;
        }
        if (values != nullptr) result.data.assign(values, values + accepted.bytes);
        return result;
    }

    // The words that this worker gave to the round of the lane's last result; null: it gave none,
    // or that was no scatter.
    const std::uint8_t *own_part(const Lane &lane, std::uint32_t index) const {
        if (lane.accepted.kept != Lane::Kept::kOwnPart) return nullptr;
        return memory_.data() + values_bytes_ * index;
    }

  private:
    // Where this worker's tensor has the values of a result, or has had them all along; null:
    // nowhere.
    static const std::uint8_t *in_tensor(const Tensor &tensor, std::uint64_t chunk) {
        if (tensor.gets(chunk)) return tensor.chunk_out(chunk);
        const bool has_them = tensor.request.is_moved() && tensor.owns(chunk);
        return has_them ? tensor.chunk_in(chunk) : nullptr;
    }

    void keep(Lane::Accepted &accepted, std::uint32_t index, Lane::Kept kept,
              const std::uint8_t *values, std::size_t bytes) {
        accepted.bytes = static_cast<std::uint32_t>(bytes);
        if (memory_.empty()) return;
        accepted.kept = kept;
        std::memcpy(memory_.data() + values_bytes_ * index, values, bytes);
    }

    std::size_t values_bytes_of_packet_;
    std::size_t values_bytes_;  // of a chunk, at most
    std::vector<std::uint8_t> memory_;
};

}  // namespace ina::host
