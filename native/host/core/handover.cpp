// What a job needs to go on without the switch: which results each worker has.
//
// A lane is stop-and-wait, so when the data path stops, two workers differ in a lane by one result
// at most: none gets the result of s + W before all have sent it, which none does before it has the
// result of s. The newest result of each lane is therefore all that one worker may have and another
// lack; it lies in its tensor while that is pending, and in kept_memory_ afterwards. Once it has
// been handed on, all workers have the same chunks done, and the inputs of the others are whole:
// results are written only when they are accepted.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "host/core/worker_core.hpp"

namespace ina::host {

LaneResult WorkerCore::lane_result(std::uint32_t number) const {
    const std::uint32_t index = number - first_own_;
    if (index >= lane_count()) {
        throw std::invalid_argument("lane must be " + std::to_string(first_own_) + ".." +
                                    std::to_string(first_own_ + lane_count() - 1) + ", got " +
                                    std::to_string(number));
    }
    const Lane &lane = lanes_[index];
    LaneResult result;
    result.accepted = lane.has_history;
    if (!lane.has_history) return result;
    result.exponent_only = lane.accepted.bytes == 0;
    result.seq = lane.seq - window_;
    result.tensor = lane.accepted.tensor;
    result.chunk = lane.accepted.chunk;
    if (result.exponent_only) return result;
    const std::uint8_t *values = nullptr;
    if (lane.accepted.kept) {
        values = kept_memory_.data() + values_bytes_ * index;
    } else if (const auto found = tensors_.find(result.tensor); found != tensors_.end()) {
        values = found->second.chunk_out(result.chunk);
    }
    if (values != nullptr) result.data.assign(values, values + lane.accepted.bytes);
    return result;
}

// Those that lanes of this core have still to do.
std::vector<bool> WorkerCore::undone_chunks(const Tensor &tensor) const {
    std::vector<bool> undone(tensor.place.chunks);
    const auto mark_from = [&](std::uint64_t first) {
        for (std::uint64_t chunk = first; chunk < undone.size(); chunk += window_) {
            undone[chunk] = true;
        }
    };
    for (const Lane &lane : lanes_) {
        if (lane.tensor == &tensor) mark_from(lane.chunk);
        for (const Lane::Assignment &later : lane.queue) {
            if (later.tensor == &tensor) mark_from(later.first_chunk);
        }
    }
    return undone;
}

std::vector<PendingTensor> WorkerCore::pending() const {
    std::vector<PendingTensor> pending;
    for (const auto &[id, tensor] : tensors_) {
        const std::vector<bool> undone = undone_chunks(tensor);
        PendingTensor entry{tensor.request, {}};
        for (std::uint64_t chunk = 0; chunk < tensor.place.chunks; ++chunk) {
            if (!undone[chunk]) continue;
            if (entry.undone.empty() || entry.undone.back().end != chunk) {
                entry.undone.push_back({chunk, chunk});
            }
            entry.undone.back().end = chunk + 1;
        }
        pending.push_back(std::move(entry));
    }
    std::sort(pending.begin(), pending.end(),
              [](const auto &a, const auto &b) { return a.request.id < b.request.id; });
    return pending;
}

void WorkerCore::put_result(std::uint32_t number, std::uint32_t seq, const void *data,
                            std::size_t bytes) {
    const std::string what =
        "lane " + std::to_string(number) + ", sequence number " + std::to_string(seq) + ": ";
    const std::uint32_t index = number - first_own_;
    if (index >= lane_count()) throw std::invalid_argument(what + "there is no such lane");
    Lane &lane = lanes_[index];
    if (!lane.is_waiting() || lane.seq != seq || !lane.has_values()) {
        throw std::invalid_argument(what + "the lane does not wait for values");
    }
    const Tensor &tensor = *lane.tensor;
    if (bytes != tensor.chunk_bytes(lane.chunk)) {
        throw std::invalid_argument(what + "the chunk has " +
                                    std::to_string(tensor.chunk_bytes(lane.chunk)) +
                                    " bytes, got " + std::to_string(bytes));
    }
    std::memcpy(tensor.chunk_out(lane.chunk), data, bytes);
    ++counters_.chunks_done;
    counters_.bytes_done += bytes;
    recovery_.withdrawn(index);
    advance(lane, true, 0);
}

}  // namespace ina::host
