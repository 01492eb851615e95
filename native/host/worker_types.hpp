// What goes into and comes out of WorkerCore.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/quantize.hpp"
#include "host/rtt_estimator.hpp"

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
    std::uint64_t overtaken = 0;   // of them, because a later packet was answered before
    std::uint64_t timeouts = 0;    // timer expiries; each leads to one or more retransmissions
    std::uint64_t duplicates = 0;  // results of the chunk that the lane completed last
    std::uint64_t stale = 0;       // results of older chunks, or after giving up
    std::uint64_t malformed = 0;   // not a packet of this wire format, or not a result
    std::uint64_t foreign = 0;     // another job, epoch or worker
    std::uint64_t mismatched = 0;  // ours, but not what this worker waits for: type, size, slot ...
    std::uint64_t ecn_marked = 0;  // accepted results with the ECN flag or IP mark
    std::uint64_t exponent_rounds = 0;
    std::uint64_t chunks_done = 0;
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

}  // namespace ina::host
