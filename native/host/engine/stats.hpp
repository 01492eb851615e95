// What an engine tells of itself.
#pragma once

#include <cstdint>

#include "host/core/worker_types.hpp"
#include "host/engine/rhythm.hpp"
#include "host/engine/station.hpp"

namespace ina::host {

struct EngineStats {
    WorkerCounters worker;
    RhythmCounters rhythm;
    std::int64_t srtt_ns = 0;  // the largest of all shares, as is the next
    std::int64_t rto_ns = 0;
    std::uint32_t window = 0;      // W, packets; of the newest mapping in use
    std::int64_t shortest_ns = 0;  // round trip of late, the shortest of all shares; 0: none so far
    std::int64_t mean_ns = 0;      // the largest of all shares' moving averages
    std::uint32_t in_flight_limit = 0;  // now: W, what the queues hold, or what the path holds
    std::uint32_t in_flight = 0;
    std::uint64_t refused = 0;               // times that it was plain that no switch is there
    std::uint64_t refused_since_result = 0;  // of them, since the last accepted result
    std::uint64_t spent = 0;  // reliable connections that have given up: nothing more will come
};

// Adds what these mappings' shares say, each looked at with its mutex held. current: the one that
// round trips and limits are of.
void add_shares(const Mappings &mappings, const Mapping *current, std::int64_t now_ns,
                EngineStats *stats);
// Where the lanes are: of the older of two mappings, as long as an operation waits there.
LaneSnapshot snapshot_of(const Mappings &mappings, std::int64_t now_ns);

}  // namespace ina::host
