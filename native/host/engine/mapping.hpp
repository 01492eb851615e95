// A mapping of a job's chunks to slots, as one worker works by it: an epoch, W and trees, and the
// lanes for them, divided among its threads. A job has one; while it changes to another one, the
// worker works by both, side by side: each has cores, sequence numbers and windows of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/core/submission.hpp"
#include "host/engine/division.hpp"
#include "host/engine/share.hpp"

namespace ina::host {

// Where the results of a thread's packets wait for it.
struct ResultQueue {
    std::uint32_t room_packets;  // that find room there, full ones
    bool is_own;                 // else all threads have this one together
};

struct Mapping {
    // `most`: packets in flight of all threads together, but for their queues' room. `queues`: of
    // each thread. `ways`: among them those of its trees. `memory`: of its lanes' packets, or
    // nothing. `first_bit`: of its shares, among the bits of an Operation. Throws
    // std::invalid_argument.
    Mapping(const WorkerConfig &config, std::uint32_t most, const congestion::Choice &congestion,
            const std::vector<ResultQueue> &queues, const std::vector<Way> &ways,
            const PacketMemory &memory, std::uint32_t first_bit);

    std::uint64_t bit_of(std::size_t share) const {
        return std::uint64_t{1} << (first_bit + share);
    }
    // Those with lanes that the tensor runs on, as bits.
    std::uint64_t takers(const Submission &submission) const;
    Share &share_of(std::uint32_t lane) const;  // of a lane that there is not: any
    LaneParts parts() const {
        return {window, threads, static_cast<std::uint32_t>(framing.prefix_bytes())};
    }
    // Takes each share's mutex. choice: null: the windows stay. packets: of all shares together, of
    // which each gets its part, at least 1; 0: no limit but the windows. Throws
    // std::invalid_argument as congestion::make_control does.
    void set_congestion(const congestion::Choice *choice, std::uint32_t packets) const;

    // The same with what the worker has learnt of the network by this one. Takes each share's
    // mutex.
    WorkerConfig warmed(WorkerConfig config) const;

    const std::uint32_t epoch;
    const std::uint32_t window;   // W
    const std::uint32_t threads;  // that have shares
    const std::uint32_t first_bit;
    const PacketMemory memory;
    const std::vector<Tree> trees;
    const Framing framing;
    std::vector<std::unique_ptr<Share>> shares;  // in the order of their lanes
    ShareFinder finder;
    std::atomic<std::int64_t> progress_ns{0};  // when a result was accepted last

    // Guarded by the engine's own mutex.
    SubmissionOrder order;
    bool is_open = true;  // else what was submitted waits in the inboxes: nothing may be sent yet
};

// The packets that `config` and the caller allow in flight: W, or `wanted` if that is fewer. 0: W.
std::uint32_t most_in_flight(const WorkerConfig &config, std::uint32_t wanted);

// The first `lanes` frames of a channel's memory; nothing if it has none. Throws
// std::invalid_argument when it has fewer.
PacketMemory first_frames(const PacketMemory &all, std::uint32_t lanes);
// As many that `taken` has not: those of another mapping. Throws std::runtime_error when there are
// not so many in a row.
PacketMemory frames_beside(const PacketMemory &all, const PacketMemory &taken, std::uint32_t lanes);

}  // namespace ina::host
