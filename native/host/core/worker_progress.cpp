// What WorkerCore tells about itself: that nothing completes any more, and where its lanes are.
#include "host/core/worker_core.hpp"

namespace ina::host {

const WorkerCore::Lane *WorkerCore::longest_waiting() const {
    const Lane *oldest = nullptr;
    for (const Lane &lane : lanes_) {
        if (lane.state != LaneState::kWaiting) continue;
        if (oldest == nullptr || lane.first_sent_ns < oldest->first_sent_ns) oldest = &lane;
    }
    return oldest;
}

bool WorkerCore::stalled(std::int64_t now_ns) {
    const std::int64_t waited_ns = now_ns - last_progress_ns_;
    if (tensors_.empty() || waited_ns < config_.stall_timeout_ns) return false;
    StallReport report;
    report.waited_ns = waited_ns;
    report.in_flight = in_flight_;
    if (const Lane *oldest = longest_waiting()) {
        report.oldest_seq = oldest->seq;
        report.anything_sent = true;
    }
    stall_ = report;
    return true;
}

LaneSnapshot WorkerCore::lanes(std::int64_t now_ns) const {
    LaneSnapshot snapshot;
    snapshot.seqs.reserve(lane_count());
    snapshot.waiting.resize((lane_count() + 7) / 8);
    for (std::uint32_t i = 0; i < lane_count(); ++i) {
        const Lane &lane = lanes_[i];
        const bool waiting = lane.state == LaneState::kWaiting;
        snapshot.seqs.push_back(waiting ? lane.seq : lane.seq - window_);
        if (waiting) snapshot.waiting[i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
    }
    snapshot.in_flight = in_flight_;
    snapshot.heard_ns = heard_ns_;
    for (const auto &[id, tensor] : tensors_) {
        if (snapshot.oldest.id == 0 || id < snapshot.oldest.id) snapshot.oldest = tensor.request;
    }
    if (const Lane *oldest = longest_waiting()) {
        snapshot.silent_ns = now_ns - heard_ns_;
        snapshot.oldest_seq = oldest->seq;
        snapshot.oldest_waited_ns = now_ns - oldest->first_sent_ns;
    }
    return snapshot;
}

}  // namespace ina::host
