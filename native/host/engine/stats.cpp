#include "host/engine/stats.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace ina::host {

void add_shares(const Mappings &mappings, const Mapping *current, std::int64_t now_ns,
                EngineStats *stats) {
    std::int64_t last_result_ns = -1;
    for (const auto &mapping : mappings) {
        for (const auto &share : mapping->shares) {
            const std::lock_guard lock(share->mutex);
            share->core.settle_resends(now_ns);
            const WorkerCore &core = share->core;
            const WorkerCounters counters = core.counters();
            add_counters(&stats->worker, counters);
            if (core.results() > 0 && share->last_result_ns > last_result_ns) {
                last_result_ns = share->last_result_ns;
                stats->worker.last_seq = counters.last_seq;
            }
            stats->in_flight += core.in_flight();
            if (mapping.get() != current) continue;
            const RttEstimator &rtt = core.recovery().rtt();
            stats->srtt_ns = std::max(stats->srtt_ns, rtt.srtt_ns());
            stats->rto_ns = std::max(stats->rto_ns, rtt.timeout_ns());
            stats->in_flight_limit += core.in_flight_limit();
            const congestion::RoundTrips &trips = rtt.round_trips();
            stats->mean_ns = std::max(stats->mean_ns, trips.mean_ns);
            if (trips.shortest_ns == 0) continue;
            stats->shortest_ns = stats->shortest_ns == 0
                                     ? trips.shortest_ns
                                     : std::min(stats->shortest_ns, trips.shortest_ns);
        }
    }
}

LaneSnapshot snapshot_of(const Mappings &mappings, std::int64_t now_ns) {
    LaneSnapshot snapshot;
    for (const auto &mapping : mappings) {
        std::vector<LaneSnapshot> parts;
        for (const auto &share : mapping->shares) {
            const std::lock_guard lock(share->mutex);
            parts.push_back(share->core.lanes(now_ns));
        }
        LaneSnapshot its = parts.size() == 1 ? std::move(parts[0]) : merge_lanes(parts);
        const bool is_first = snapshot.seqs.empty();
        const bool goes_on_here = its.oldest.id != 0;
        if (is_first || goes_on_here) snapshot = std::move(its);
        if (goes_on_here) break;
    }
    return snapshot;
}

}  // namespace ina::host
