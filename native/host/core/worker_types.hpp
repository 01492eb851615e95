// What goes into and comes out of WorkerCore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/core/quantize.hpp"
#include "host/recovery/rtt_estimator.hpp"

namespace ina::host {

enum class ReduceOp : std::uint8_t { kSum, kAverage };

// One worker's place in one job, as the controller gave it.
struct WorkerConfig {
    std::uint16_t job = 0;
    std::uint32_t epoch = 0;  // the header carries the low 16 bits
    int rank = 0;
    int world_size = 1;
    std::uint32_t slots = 2;                         // both versions; the same on all workers
    std::uint32_t values_per_packet = 0;             // of the P4 build
    std::int64_t stall_timeout_ns = 30'000'000'000;  // fail when no chunk completes for so long
    RtoLimits rto;
    // Where the sequence numbers begin, a multiple of 2 W; the same on all workers.
    std::uint32_t first_seq = 0;
    // Keep a copy of each lane's last result where the tensor may end before the lane goes on; what
    // recovery needs (worker_recovery.cpp). Costs one packet's values a lane, and copying them.
    bool keep_results = false;
    // This core has the lanes [share W / shares, (share + 1) W / shares) of W; `shares` is a power
    // of two, W at most. Each worker of a job divides its lanes as it likes.
    std::uint32_t share = 0;
    std::uint32_t shares = 1;
};

// The memory behind `in` must not change, and both must stay, until the tensor completes.
// `out` may be `in`; any other overlap is undefined.
struct TensorRequest {
    std::uint64_t id = 0;
    const void *in = nullptr;
    void *out = nullptr;
    std::uint64_t elems = 0;
    ValueType type = ValueType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
};

// Frames to build packets in, one for each lane: a line of 64 bytes with the header at its end,
// then the values. A frame is not written to again before the result of the lane's packet is here.
struct PacketMemory {
    std::uint8_t *base = nullptr;
    std::size_t stride_bytes = 0;
    std::uint32_t frames = 0;
};

struct PacketView {
    const std::uint8_t *data;
    std::size_t bytes;  // UDP payload
};

struct WorkerCounters {
    std::uint64_t packets_sent = 0;  // with retransmissions
    std::uint64_t packets_received = 0;
    std::uint64_t payload_bytes_sent = 0;  // UDP payload
    std::uint64_t payload_bytes_received = 0;
    std::uint64_t retransmissions = 0;
    // Each retransmission is in one of these once its packet has been answered (resends.hpp), and
    // in none before: losses + spurious + probes <= retransmissions.
    std::uint64_t losses = 0;      // needed: an earlier copy, or the answer to it, was lost
    std::uint64_t spurious = 0;    // not needed; sent because a later packet was answered before
    std::uint64_t probes = 0;      // not needed; sent because nothing was heard: somebody was late
    std::uint64_t overtaken = 0;   // of all, because a later packet was answered before
    std::uint64_t timeouts = 0;    // timer expiries; each leads to one or more retransmissions
    std::uint64_t duplicates = 0;  // results of the chunk that the lane completed last
    std::uint64_t stale = 0;       // results of older chunks, or after giving up
    std::uint64_t malformed = 0;   // not a packet of this wire format, or not a result
    std::uint64_t foreign = 0;     // another job, epoch or worker
    std::uint64_t mismatched = 0;  // ours, but not what this worker waits for: type, size, slot ...
    std::uint64_t ecn_marked = 0;  // accepted results with the ECN flag or IP mark
    std::uint64_t exponent_rounds = 0;  // that brought no sums: without values, or guessed wrong
    std::uint64_t guessed_chunks = 0;   // done in their first round, by a guess that was right
    std::uint64_t missed_guesses = 0;   // of the exponent rounds
    std::uint64_t chunks_done = 0;
    std::uint64_t bytes_done = 0;  // of those chunks, as the caller's type
    std::uint64_t tensors_submitted = 0;
    std::uint64_t tensors_done = 0;
    std::uint32_t last_seq = 0;  // of the last accepted result
};

// Why the core gave up: no chunk completed for stall_timeout_ns.
struct StallReport {
    std::int64_t waited_ns = 0;
    std::uint32_t oldest_seq = 0;  // of the packet that has waited longest
    std::uint32_t in_flight = 0;
    bool anything_sent = false;
};

// Why the core stopped: the result of a round holds what workers said who had submitted other
// things than this one (digest.hpp).
struct Mismatch {
    std::uint64_t tensor = 0;  // id: it, or one before it, is what they differ in
    std::uint32_t seq = 0;
};

// Where the lanes are, for whoever asks which worker the others wait for.
struct LaneSnapshot {
    // One for each lane, of its packet sent last; a lane that has sent nothing says its first
    // number - W.
    std::vector<std::uint32_t> seqs;
    std::vector<std::uint8_t> waiting;  // bit lane % 8 of byte lane / 8: that packet is unanswered
    std::uint32_t in_flight = 0;
    std::int64_t silent_ns = 0;    // since the last result, or the first packet; 0: none in flight
    std::uint32_t oldest_seq = 0;  // of the packet that has waited longest, where one is in flight
    std::int64_t oldest_waited_ns = 0;  // since it was first sent
    std::int64_t heard_ns = 0;          // when the last result came, or the first packet went out
    TensorRequest oldest;  // submitted first of those that are not done; id 0: all are done
};

// The newest result of one lane, which other workers may lack.
struct LaneResult {
    bool accepted = false;       // any so far; else the rest says nothing
    bool exponent_only = false;  // it brought no values
    std::uint32_t seq = 0;
    std::uint64_t tensor = 0;  // id
    std::uint64_t chunk = 0;
    std::vector<std::uint8_t> data;  // as in the tensor; empty without keep_results
};

struct ChunkRange {
    std::uint64_t begin;
    std::uint64_t end;  // the first that is not in it
};

// A tensor that is not done: chunks outside `undone` have their results in `out`, the others' `in`
// is still the input.
struct PendingTensor {
    TensorRequest request;
    std::vector<ChunkRange> undone;  // ascending, apart from each other
};

}  // namespace ina::host
