// One share of a worker's lanes, which several threads work on in turns, and what the shares say
// together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "congestion/algorithms.hpp"
#include "host/channel/channel.hpp"
#include "host/core/worker_core.hpp"
#include "host/transport/pacing.hpp"

namespace ina::host {

// Thread k of a transport owns share k: it looks after its timers and new tensors. Whichever thread
// has received results for it accepts them, and sends what follows.
struct Share {
    // most: packets, what its window may be at most.
    Share(const WorkerConfig &config, const congestion::Choice &window, std::uint32_t most,
          const PacketMemory &memory)
        : core(config, congestion::make_window(window, most), memory), pacing(most) {}

    std::mutex mutex;  // guards what follows
    WorkerCore core;
    const Pacing pacing;
    std::int64_t time_ns = 0;  // the latest that the core was told: it never goes back
    std::uint64_t results = 0;
    std::int64_t last_result_ns = 0;
    std::int64_t attended_ns = kNever;  // the owner looks at the core by then
    // The owner's channel, as of its last round.
    ChannelCounters channel;
    bool gso = false;
    bool gro = false;
    std::uint64_t passed_on = 0;  // of what it received

    // Guarded by the transport's own mutex.
    std::vector<Submission> inbox;  // submitted, not in the core yet
    bool asleep = false;            // the owner: to be woken
};

// Of all shares, in the order of their lanes.
LaneSnapshot merge_lanes(const std::vector<LaneSnapshot> &shares);
// Tensors that any share has not done.
std::vector<PendingTensor> merge_pending(const std::vector<std::vector<PendingTensor>> &shares);
// Adds up; but for tensors and last_seq, which are no sums.
void add_counters(WorkerCounters *sum, const WorkerCounters &share);
void add_counters(ChannelCounters *sum, const ChannelCounters &share);

}  // namespace ina::host
