// What goes into and comes out of WorkerCore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/core/collective.hpp"
#include "host/recovery/resends.hpp"

namespace ina::host {

// A collective with this rank's memory. That behind `in` must not change, and both must stay, until
// the tensor completes. `out` may be `in`; any other overlap is undefined. Nothing is written where
// this rank gets no values, and `out` may be null.
//
// Behind them are `elems` elements; of kReduceScatter behind `in`, and of kAllGather behind `out`,
// as many for each rank, one part behind the other. Where a rank has nothing to give, or gets
// nothing, its pointer may be null. The own part of kAllGather's `out` may be `in`.
struct TensorRequest : Collective {
    std::uint64_t id = 0;      // counts in its session
    std::uint64_t before = 0;  // tensors that its group has summed elsewhere, before the session's
    const void *in = nullptr;
    void *out = nullptr;

    // Among all of its group.
    std::uint64_t number() const { return before + id; }
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
    std::uint64_t unclaimed = 0;     // of them, sent first, that may claim no slot: the window's
    std::uint64_t packets_received = 0;
    std::uint64_t payload_bytes_sent = 0;  // UDP payload
    std::uint64_t payload_bytes_received = 0;
    std::uint64_t duplicates = 0;  // results of the chunk that the lane completed last
    std::uint64_t stale = 0;       // results of older chunks, or after giving up
    std::uint64_t malformed = 0;   // not a packet of this wire format, or not a result
    std::uint64_t foreign = 0;     // another job, epoch or worker
    std::uint64_t mismatched = 0;  // ours, but not what this worker waits for: type, size, slot ...
    std::uint64_t corrupted = 0;   // ours, but not the sum of what the workers have sent
    std::uint64_t exponent_rounds = 0;  // that brought no sums: without values, or guessed wrong
    std::uint64_t guessed_chunks = 0;   // done in their first round, by a guess that was right
    std::uint64_t missed_guesses = 0;   // of the exponent rounds
    std::uint64_t chunks_done = 0;
    std::uint64_t bytes_done = 0;  // of those chunks, as the caller's type
    std::uint64_t tensors_submitted = 0;
    std::uint64_t tensors_done = 0;
    std::uint32_t last_seq = 0;  // of the last accepted result
    RecoveryCounters recovery;
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

// Why the core stopped: results that were not the sums of what the workers had sent
// (sum_check.hpp).
struct Corruption {
    std::uint64_t tensor = 0;  // id
    std::uint32_t seq = 0;
    std::uint32_t results = 0;      // of this packet that did not verify
    std::uint64_t all_results = 0;  // of all packets
    bool same = false;              // each of this packet's held the same: it is in the slot
    bool own_is_missing = false;    // its largest exponent is below this worker's own
    std::int64_t first_value = -1;  // that is not as sent, where no other worker's is in it
};

// Where the lanes are, for whoever asks which worker the others wait for.
struct LaneSnapshot {
    std::uint32_t epoch = 0;  // of the mapping that they are of
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
    bool exponent_only = false;  // its round made no sums
    bool non_finite = false;     // they are NaN
    std::uint32_t seq = 0;
    std::uint64_t tensor = 0;  // id
    std::uint64_t chunk = 0;
    // As in the tensor. Empty: without keep_results, or it told this worker, which got none, that
    // its sums are made.
    std::vector<std::uint8_t> data;
};

struct ChunkRange {
    std::uint64_t begin;
    std::uint64_t end;  // the first that is not in it
};

inline std::vector<ChunkRange> ranges_of(const std::vector<bool> &chunks) {
    std::vector<ChunkRange> ranges;
    for (std::uint64_t chunk = 0; chunk < chunks.size(); ++chunk) {
        if (!chunks[chunk]) continue;
        if (ranges.empty() || ranges.back().end != chunk) ranges.push_back({chunk, chunk});
        ranges.back().end = chunk + 1;
    }
    return ranges;
}

// A tensor that is not done: chunks outside `undone` have their results in `out`, the others' `in`
// is still the input.
struct PendingTensor {
    TensorRequest request;
    std::vector<ChunkRange> undone;  // ascending, apart from each other
};

}  // namespace ina::host
