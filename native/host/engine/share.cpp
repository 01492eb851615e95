#include "host/engine/share.hpp"

#include <algorithm>
#include <map>

namespace ina::host {

LaneSnapshot merge_lanes(const std::vector<LaneSnapshot> &shares) {
    LaneSnapshot all;
    std::size_t lanes = 0;
    for (const LaneSnapshot &share : shares) {
        all.epoch = share.epoch;
        lanes += share.seqs.size();
        all.heard_ns = std::max(all.heard_ns, share.heard_ns);
    }
    all.seqs.reserve(lanes);
    all.waiting.resize((lanes + 7) / 8);
    for (const LaneSnapshot &share : shares) {
        for (std::size_t i = 0; i < share.seqs.size(); ++i) {
            const std::size_t lane = all.seqs.size();
            all.seqs.push_back(share.seqs[i]);
            const std::uint32_t waits = share.waiting[i / 8] >> (i % 8) & 1u;
            all.waiting[lane / 8] |= static_cast<std::uint8_t>(waits << (lane % 8));
        }
        if (share.in_flight > 0) {
            const std::int64_t since_ns = share.silent_ns - (all.heard_ns - share.heard_ns);
            all.silent_ns = std::max(all.silent_ns, since_ns);
            if (all.in_flight == 0 || share.oldest_waited_ns > all.oldest_waited_ns) {
                all.oldest_seq = share.oldest_seq;
                all.oldest_waited_ns = share.oldest_waited_ns;
            }
        }
        all.in_flight += share.in_flight;
        const std::uint64_t oldest = share.oldest.id;
        if (oldest != 0 && (all.oldest.id == 0 || oldest < all.oldest.id)) {
            all.oldest = share.oldest;
        }
    }
    return all;
}

std::vector<PendingTensor> merge_pending(const std::vector<std::vector<PendingTensor>> &shares) {
    std::map<std::uint64_t, PendingTensor> by_id;
    for (const std::vector<PendingTensor> &share : shares) {
        for (const PendingTensor &tensor : share) {
            PendingTensor &all =
                by_id.emplace(tensor.request.id, PendingTensor{tensor.request, {}}).first->second;
            all.undone.insert(all.undone.end(), tensor.undone.begin(), tensor.undone.end());
        }
    }
    std::vector<PendingTensor> merged;
    for (auto &[id, tensor] : by_id) {
        std::sort(tensor.undone.begin(), tensor.undone.end(),
                  [](const ChunkRange &a, const ChunkRange &b) { return a.begin < b.begin; });
        std::vector<ChunkRange> joined;
        for (const ChunkRange &range : tensor.undone) {
            if (joined.empty() || joined.back().end != range.begin) {
                joined.push_back(range);
            } else {
                joined.back().end = range.end;
            }
        }
        merged.push_back({tensor.request, std::move(joined)});
    }
    return merged;
}

void add_counters(WorkerCounters *sum, const WorkerCounters &share) {
    for (const auto field :
         {&WorkerCounters::packets_sent, &WorkerCounters::unclaimed,
          &WorkerCounters::packets_received, &WorkerCounters::payload_bytes_sent,
          &WorkerCounters::payload_bytes_received, &WorkerCounters::duplicates,
          &WorkerCounters::stale, &WorkerCounters::malformed, &WorkerCounters::foreign,
          &WorkerCounters::mismatched, &WorkerCounters::corrupted, &WorkerCounters::exponent_rounds,
          &WorkerCounters::guessed_chunks, &WorkerCounters::missed_guesses,
          &WorkerCounters::chunks_done, &WorkerCounters::bytes_done}) {
        sum->*field += share.*field;
    }
    for (const auto field :
         {&RecoveryCounters::retransmissions, &RecoveryCounters::losses,
          &RecoveryCounters::spurious, &RecoveryCounters::probes, &RecoveryCounters::overtaken,
          &RecoveryCounters::timeouts, &RecoveryCounters::ecn_marked, &RecoveryCounters::last}) {
        sum->recovery.*field += share.recovery.*field;
    }
}

}  // namespace ina::host
