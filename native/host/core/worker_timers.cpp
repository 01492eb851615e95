// WorkerCore's timers: what is sent again, when, and when it gives up.
#include <algorithm>
#include <utility>

#include "host/core/worker_core.hpp"

namespace ina::host {
namespace {

// Lanes that a round of probes sends again: few at first, for at the end of a tensor only lost
// packets are left; then twice as many each time, up to an eighth of the window.
constexpr std::uint32_t kFirstProbes = 4;
constexpr std::uint32_t kMinProbeLimit = 16;
constexpr std::uint32_t kProbeShare = 8;
// Rounds before the timeout, the second after twice the silence: a probe may be lost, too.
constexpr int kTailProbes = 2;
// The first comes after so many of the shortest round trips at the latest. The time in which other
// workers mend their losses is in the smoothed one: if it put off ours, theirs would come later,
// too, and so on. Not before a time slice or so: on busy cores some worker is always that late.
constexpr std::int64_t kMostSilentRoundTrips = 8;
constexpr std::int64_t kTimeSliceNs = 1'000'000;

// How much later a packet must have been sent than an unanswered one for its result to prove a
// loss: half the smoothed round-trip time, and at least this. Results of one batch come in any
// order.
constexpr std::int64_t kMinReorderingNs = 20'000;
// But at most two of the shortest round trips. The time that a worker takes to find its losses is
// in the round trips of all: with half of it they would find theirs later, and so on.
constexpr std::int64_t kShortestRoundTrips = 2;
constexpr int kMaxToleranceDoublings = 6;
// More where that was wrong most times of late (as in RACK, RFC 8985 section 6.2.4): a thread that
// waits for a core keeps results, or holds up its lanes. Half of it is forgotten when it was right
// for so long. Where packets are lost, those that another worker lost and sent again make some of
// our copies vain, too: less than half.
constexpr std::int64_t kForgetReorderingNs = 1'000'000'000;
constexpr double kMostInVain = 0.75;
constexpr double kInVainWeight = 0.125;  // of the newest case in the average

// Interrupt moderation. On a slow link every train of packets would wake the thread for itself;
// while packets stand in queues for two milliseconds or more, a third of that may pass unused. It
// must be less than a half: what we and another worker leave unread counts as queueing for both,
// and would keep itself alive.
constexpr std::int64_t kLeastQueuedNs = 2'000'000;
constexpr std::int64_t kModeratedShare = 3;

// A lane's own timer is that many timeouts long: while results come, being overtaken is the better
// sign of loss, and when none come the probes are due first.
constexpr std::int64_t kLaneTimeouts = 4;

}  // namespace

std::int64_t WorkerCore::lane_deadline_ns(const Lane &lane) const {
    return std::max(lane.sent_ns, resumed_ns_) + kLaneTimeouts * rtt_.timeout_ns(lane.timeouts);
}

std::int64_t WorkerCore::quiet_deadline_ns() const {
    return std::max(heard_ns_, last_resend_ns_) + rtt_.timeout_ns(0);
}

// Windows differ between workers, and each loses other packets. Were lanes sent in the order in
// which their results came, each worker would soon fill its window with other lanes than the others
// do, and all would wait for each other. So the chunks that come first go first, on all ranks; and
// as many of them as the window holds go even if it is full: what fills it has been sent before,
// and waits for somebody else.
bool WorkerCore::may_send_next() const {
    const std::uint32_t window = congestion_->packets();
    if (in_flight_ < window) return true;
    return lanes_[ready_.front()].order < lowest_order() + window;
}

std::uint64_t WorkerCore::lowest_order() const {
    std::uint64_t lowest = UINT64_MAX;
    for (std::uint32_t i = oldest_; i != kNoLane; i = lanes_[i].newer) {
        lowest = std::min(lowest, lanes_[i].order);
    }
    return lowest;
}

// Nothing overtakes a loss among the last packets. So once nothing has been heard for two round
// trips, a few go again (as in RFC 8985, section 7.2): what is answered then shows what was lost.
// The timeout comes later, since it bears a late worker's time slices, and backs off.
std::int64_t WorkerCore::tail_deadline_ns() const {
    if (quiet_ || tail_probes_ == kTailProbes) return kNever;
    if (newest_ == kNoLane || rtt_.srtt_ns() == 0) return kNever;
    std::int64_t silence_ns = rtt_.probe_timeout_ns();
    if (const std::int64_t shortest_ns = congestion_->shortest_ns(); shortest_ns > 0) {
        const std::int64_t most_ns = std::max(kMostSilentRoundTrips * shortest_ns, kTimeSliceNs);
        silence_ns = std::min(silence_ns, most_ns);
    }
    return std::max(heard_ns_, lanes_[newest_].sent_ns) + (silence_ns << tail_probes_);
}

std::int64_t WorkerCore::probe_deadline_ns() const {
    return std::min(quiet_deadline_ns(), tail_deadline_ns());
}

void WorkerCore::link_newest(Lane &lane) {
    const auto index = own_index(lane.seq);
    lane.older = newest_;
    lane.newer = kNoLane;
    (newest_ == kNoLane ? oldest_ : lanes_[newest_].newer) = index;
    newest_ = index;
}

void WorkerCore::unlink(Lane &lane) {
    (lane.older == kNoLane ? oldest_ : lanes_[lane.older].newer) = lane.newer;
    (lane.newer == kNoLane ? newest_ : lanes_[lane.newer].older) = lane.older;
}

PacketView WorkerCore::resend(Lane &lane, ResendReason reason, std::int64_t now_ns) {
    if (lane.retries < UINT8_MAX) ++lane.retries;
    std::uint8_t *const bytes = packet(lane);
    bytes[wire::kFlagsOffset] |= wire::kFlagResend;
    Origin{static_cast<std::uint32_t>(config_.rank), lane.resends.add(reason)}.store(bytes);
    ++counters_.retransmissions;
    last_resend_ns_ = now_ns;
    unlink(lane);
    link_newest(lane);
    return emit(lane, now_ns);
}

void WorkerCore::note_overtaken(Lane &lane) {
    // No second result came for the packet before: it was lost.
    if (lane.overtaken_by_ns > 0) in_vain_ -= kInVainWeight * in_vain_;
    const bool sent_twice = lane.retries == 1 && lane.timeouts == 0;
    lane.overtaken_by_ns = sent_twice ? overtaken_ns_ - lane.first_sent_ns : 0;
}

// The same result for the second time. Where the packet was sent twice, the first copy was not lost
// then, nor was its result.
void WorkerCore::note_duplicate(Lane &lane, std::int64_t now_ns) {
    if (lane.overtaken_by_ns <= 0) return;
    in_vain_ += kInVainWeight * (1.0 - in_vain_);
    reordering_ns_ = std::max(reordering_ns_, lane.overtaken_by_ns);
    reordered_at_ns_ = now_ns;
    lane.overtaken_by_ns = 0;
}

void WorkerCore::settle_resends(std::int64_t now_ns) {
    const std::int64_t before_ns = now_ns - rtt_.timeout_ns(0);
    for (Lane &lane : lanes_) lane.resends.settle_before(before_ns, &counters_);
}

std::int64_t WorkerCore::tolerance_ns(std::int64_t now_ns) {
    if (reordering_ns_ > 0 && now_ns - reordered_at_ns_ > kForgetReorderingNs) {
        reordering_ns_ /= 2;
        reordered_at_ns_ = now_ns;
    }
    // A timeout is enough: the lanes' own timers are a few of them long.
    const std::int64_t learned_ns =
        in_vain_ > kMostInVain ? std::min(reordering_ns_, rtt_.timeout_ns(0)) : 0;
    std::int64_t half_ns = rtt_.srtt_ns() / 2;
    if (const std::int64_t shortest_ns = congestion_->shortest_ns(); shortest_ns > 0) {
        half_ns = std::min(half_ns, kShortestRoundTrips * shortest_ns);
    }
    return std::max({half_ns, learned_ns, kMinReorderingNs});
}

std::size_t WorkerCore::resend_overtaken(std::int64_t now_ns, PacketView *batch,
                                         std::size_t capacity) {
    const std::int64_t tolerance_ns = this->tolerance_ns(now_ns);
    std::size_t count = 0;
    std::uint32_t next = oldest_;
    while (next != kNoLane && count < capacity) {
        Lane &lane = lanes_[next];
        next = lane.newer;
        if (lane.sent_ns + tolerance_ns >= overtaken_ns_) break;
        // It may be another worker that has lost its part: ask less and less often.
        const int doublings = std::min<int>(lane.retries, kMaxToleranceDoublings);
        if (lane.sent_ns + (tolerance_ns << doublings) >= overtaken_ns_) continue;
        ++counters_.overtaken;
        batch[count++] = resend(lane, ResendReason::kOvertaken, now_ns);
    }
    if (count > 0) congestion_->on_loss(now_ns);
    overtaken_moved_ = count == capacity;
    return count;
}

// A late worker's results come all together. Where those come that were asked for again, and no
// others, all was lost: the next round goes out at once, twice as large (as in TCP's slow start
// after a timeout, RFC 5681 section 3.1).
void WorkerCore::note_answer(const Lane &lane, std::int64_t now_ns) {
    if (lane.retries == 0) {
        unanswered_ = 0;
        more_probes_ = false;
    } else if (unanswered_ > 0 && --unanswered_ == 0) {
        more_probes_ = true;
        scan_at_ns_ = now_ns;
    }
}

std::size_t WorkerCore::resend_expired(std::int64_t now_ns, PacketView *batch,
                                       std::size_t capacity) {
    if (now_ns >= probe_deadline_ns() || more_probes_)
        return resend_probes(now_ns, batch, capacity);
    std::int64_t next_ns = probe_deadline_ns();
    std::size_t count = 0;
    std::uint32_t next = quiet_ ? kNoLane : oldest_;
    while (next != kNoLane) {
        Lane &lane = lanes_[next];
        next = lane.newer;
        // No deadline of a lane that was sent later comes before this.
        const std::int64_t earliest_ns =
            std::max(lane.sent_ns, resumed_ns_) + kLaneTimeouts * rtt_.timeout_ns(0);
        if (now_ns < earliest_ns || count == capacity) {
            next_ns = std::min(next_ns, std::max(earliest_ns, now_ns));
            break;
        }
        if (now_ns >= lane_deadline_ns(lane)) {
            rtt_.on_timeout(lane.timeouts);
            if (lane.timeouts < UINT8_MAX) ++lane.timeouts;
            ++counters_.timeouts;
            batch[count++] = resend(lane, ResendReason::kSilence, now_ns);
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
    if (std::exchange(more_probes_, false)) {
        probes_ = std::min(2 * probes_, lane_count());
    } else if (now_ns < quiet_deadline_ns()) {
        probes_ = kFirstProbes;
        ++tail_probes_;
    } else {
        probes_ = quiet_ ? std::min(2 * probes_, std::max(kMinProbeLimit, in_flight_ / kProbeShare))
                         : kFirstProbes;
        quiet_ = true;
        ++counters_.timeouts;
        rtt_.on_timeout(rtt_.backoff());
        congestion_->on_timeout(now_ns);
    }
    const std::size_t count = std::min<std::size_t>(capacity, std::min(in_flight_, probes_));
    // The first of the tensor, not those sent first: of a chunk that several workers lost, all of
    // them have to send their part again.
    std::vector<std::uint32_t> waiting;
    for (std::uint32_t i = oldest_; i != kNoLane; i = lanes_[i].newer) waiting.push_back(i);
    const auto first = waiting.begin();
    std::partial_sort(first, first + static_cast<std::ptrdiff_t>(count), waiting.end(),
                      [&](auto a, auto b) { return lanes_[a].order < lanes_[b].order; });
    for (std::size_t i = 0; i < count; ++i) {
        batch[i] = resend(lanes_[waiting[i]], ResendReason::kSilence, now_ns);
    }
    unanswered_ = static_cast<std::uint32_t>(count);
    scan_at_ns_ = probe_deadline_ns();
    scan_rto_ns_ = rtt_.timeout_ns(0);
    return count;
}

std::int64_t WorkerCore::next_deadline_ns(std::int64_t now_ns) const {
    if (stall_ || mismatch_ || tensors_.empty()) return kNever;
    std::int64_t deadline_ns = std::min(scan_at_ns_, last_progress_ns_ + config_.stall_timeout_ns);
    if (!ready_.empty() && may_send_next()) return now_ns;
    return deadline_ns;
}

std::int64_t WorkerCore::moderation_ns() const {
    // The last packets of a tensor would only come later.
    if (2 * in_flight_ < in_flight_limit()) return 0;
    const std::int64_t queued_ns = congestion_->queued_ns();
    return queued_ns < kLeastQueuedNs ? 0 : queued_ns / kModeratedShare;
}

}  // namespace ina::host
