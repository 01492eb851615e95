// WorkerCore's timers: what is sent again, when, and when it gives up.
#include <algorithm>

#include "host/worker_core.hpp"

namespace ina::host {
namespace {

// Lanes that one round of probes sends again: an eighth, but so many at least that small windows
// recover from loss as fast as without this limit.
constexpr std::uint32_t kMinProbes = 16;
constexpr std::uint32_t kProbeShare = 8;

}  // namespace

std::int64_t WorkerCore::lane_deadline_ns(const Lane &lane) const {
    return std::max(lane.sent_ns, resumed_ns_) + rtt_.timeout_ns(lane.retries);
}

std::int64_t WorkerCore::quiet_deadline_ns() const {
    return std::max(heard_ns_, last_resend_ns_) + rtt_.timeout_ns(0);
}

bool WorkerCore::may_send_next(std::int64_t now_ns) const {
    if (in_flight_ < congestion_->packets()) return true;
    // Windows may differ between workers. A lane that the window has held back for a timeout goes
    // anyway: else two workers could each wait for a lane that the other holds back.
    const Lane &next = lanes_[ready_.front()];
    return now_ns >= next.ready_since_ns + rtt_.timeout_ns(0);
}

PacketView WorkerCore::resend(Lane &lane, std::int64_t now_ns) {
    if (lane.retries < UINT8_MAX) ++lane.retries;
    packet(lane)[wire::kFlagsOffset] |= wire::kFlagResend;
    ++counters_.retransmissions;
    last_resend_ns_ = now_ns;
    return emit(lane, now_ns);
}

std::size_t WorkerCore::resend_expired(std::int64_t now_ns, PacketView *batch,
                                       std::size_t capacity) {
    if (quiet_ || now_ns >= quiet_deadline_ns()) {
        if (now_ns >= quiet_deadline_ns()) return resend_probes(now_ns, batch, capacity);
        scan_at_ns_ = quiet_deadline_ns();
        return 0;
    }
    std::size_t count = 0;
    std::int64_t next_ns = quiet_deadline_ns();
    for (Lane &lane : lanes_) {
        if (lane.state != LaneState::kWaiting) continue;
        if (now_ns >= lane_deadline_ns(lane)) {
            if (count == capacity) {
                next_ns = now_ns;
                break;
            }
            rtt_.on_timeout(lane.retries);
            ++counters_.timeouts;
            batch[count++] = resend(lane, now_ns);
        }
        next_ns = std::min(next_ns, lane_deadline_ns(lane));
    }
    if (count > 0) congestion_->on_timeout(now_ns);
    scan_at_ns_ = next_ns;
    scan_rto_ns_ = rtt_.timeout_ns(0);
    return count;
}

std::size_t WorkerCore::resend_probes(std::int64_t now_ns, PacketView *batch,
                                      std::size_t capacity) {
    quiet_ = true;
    ++counters_.timeouts;
    rtt_.on_timeout(rtt_.backoff());
    congestion_->on_timeout(now_ns);
    const std::size_t limit =
        std::min<std::size_t>(capacity, std::max(kMinProbes, in_flight_ / kProbeShare));
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < window_ && count < limit; ++i) {
        Lane &lane = lanes_[probe_cursor_];
        probe_cursor_ = (probe_cursor_ + 1) & (window_ - 1);
        if (lane.state == LaneState::kWaiting) batch[count++] = resend(lane, now_ns);
    }
    scan_at_ns_ = quiet_deadline_ns();
    scan_rto_ns_ = rtt_.timeout_ns(0);
    return count;
}

std::int64_t WorkerCore::next_deadline_ns(std::int64_t now_ns) const {
    if (stall_ || tensors_.empty()) return kNever;
    std::int64_t deadline_ns = std::min(scan_at_ns_, last_progress_ns_ + config_.stall_timeout_ns);
    if (!ready_.empty()) {
        if (may_send_next(now_ns)) return now_ns;
        const Lane &next = lanes_[ready_.front()];
        deadline_ns = std::min(deadline_ns, next.ready_since_ns + rtt_.timeout_ns(0));
    }
    return deadline_ns;
}

bool WorkerCore::stalled(std::int64_t now_ns) {
    const std::int64_t waited_ns = now_ns - last_progress_ns_;
    if (tensors_.empty() || waited_ns < config_.stall_timeout_ns) return false;
    StallReport report;
    report.waited_ns = waited_ns;
    report.in_flight = in_flight_;
    std::int64_t oldest_ns = kNever;
    for (const Lane &lane : lanes_) {
        if (lane.state != LaneState::kWaiting || lane.first_sent_ns >= oldest_ns) continue;
        oldest_ns = lane.first_sent_ns;
        report.oldest_seq = lane.seq;
        report.anything_sent = true;
    }
    stall_ = report;
    return true;
}

}  // namespace ina::host
