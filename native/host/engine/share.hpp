// One share of a worker's lanes, which several threads work on in turns, and what the shares say
// together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "congestion/algorithms.hpp"
#include "host/core/worker_core.hpp"
#include "host/engine/pacing.hpp"

namespace ina::host {

// One of the engine's threads owns it (division.hpp): looks after its timers and new tensors.
// Whichever thread has received results for it accepts them, and sends what follows.
struct Share {
    // thread: its owner. way: to its tree's first node. most: packets, what its window may be at
    // most.
    Share(std::size_t thread, std::size_t way, const WorkerConfig &config,
          const congestion::Choice &window, std::uint32_t most, const PacketMemory &memory)
        : owner(thread), way(way), room(room_of(config, most)),
          core(config, congestion::make_control(window, room), memory), pacing(most) {}

    // With the mutex held. choice: null: its window stays. packets: of this share, at least 1.
    void set_congestion(const congestion::Choice *choice, std::uint32_t packets) {
        if (choice != nullptr) core.set_control(congestion::make_control(*choice, room));
        core.set_most(packets);
        most = packets;
    }

    const std::size_t owner;
    const std::size_t way;
    const congestion::Room room;  // of its window
    std::mutex mutex;             // guards what follows
    WorkerCore core;
    const Pacing pacing;
    std::uint32_t most = UINT32_MAX;  // packets, whatever its window says
    std::int64_t time_ns = 0;         // the latest that the core was told: it never goes back
    std::uint64_t results = 0;
    std::int64_t last_result_ns = 0;
    std::int64_t attended_ns = kNever;  // the owner looks at the core by then

    // Guarded by the engine's own mutex.
    std::vector<Submission> inbox;  // submitted, not in the core yet
};

// Of all shares, in the order of their lanes.
LaneSnapshot merge_lanes(const std::vector<LaneSnapshot> &shares);
// Tensors that any share has not done.
std::vector<PendingTensor> merge_pending(const std::vector<std::vector<PendingTensor>> &shares);
// Adds up; but for tensors and last_seq, which are no sums.
void add_counters(WorkerCounters *sum, const WorkerCounters &share);

}  // namespace ina::host
