#include "host/recovery/loss_recovery.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace ina::host {
namespace {

// Lanes that a round of probes sends again: few at first, for at the end of a tensor only lost
// packets are left; then twice as many each time, up to an eighth of the window; and then from one
// on again: where all workers' probes meet in a queue that is too short for so many, the same ones
// would be dropped each time.
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

// A lane's own timer is that many timeouts long: while results come, being overtaken is the better
// sign of loss, and when none come the probes are due first.
constexpr std::int64_t kLaneTimeouts = 4;

}  // namespace

LossRecovery::LossRecovery(std::uint32_t lanes, const RtoLimits &limits,
                           std::shared_ptr<congestion::Window> window, double small_share)
    : window_(std::move(window)), small_share_(small_share), flights_(lanes), rtt_(limits) {}

// Windows differ between workers, and each loses other packets. Were lanes sent in the order in
// which their results came, each worker would soon fill its window with other lanes than the others
// do, and all would wait for each other. So the chunks that come first go first, on all ranks; and
// as many of them as the window holds go even if it is full: what fills it has been sent before,
// and waits for somebody else.
bool LossRecovery::has_room_for(std::uint64_t order, std::uint8_t flow, bool is_shared) const {
    const std::uint32_t all = window_packets();
    const std::uint32_t window = is_shared ? std::max(all / 2, 1u) : all;
    const std::uint32_t size = flights_.size(flow);
    if (size < window || order < flights_.lowest_order(flow) + window) return true;
    const double small = flights_.small(flow);
    return size - small + small * small_share_ < window;
}

void LossRecovery::sent(std::uint32_t lane, const Packet &packet, std::int64_t now_ns) {
    Flight &flight = flights_[lane];
    flight.order = packet.order;
    flight.kind = packet.kind;
    flight.flow = packet.flow;
    flight.is_small = packet.is_small;
    flight.sent_ns = flight.first_sent_ns = now_ns;
    flight.retries = 0;
    flight.timeouts = 0;
    last_sent_ns_ = now_ns;
    pacer_.sent(now_ns, window_->pace(), share_of(flight));
    if (flights_.size() == 0) heard_ns_ = now_ns;
    flights_.add_newest(lane);
    scan_at_ns_ = std::min({scan_at_ns_, lane_deadline_ns(flight), probe_deadline_ns()});
    scan_rto_ns_ = std::max(scan_rto_ns_, rtt_.timeout_ns());
}

void LossRecovery::answered(std::uint32_t lane, const Answer &answer, std::int64_t now_ns) {
    Flight &flight = flights_[lane];
    const std::uint64_t losses = counters_.losses;
    flight.resends.answered(answer.copy, now_ns, &counters_);
    if (counters_.losses > losses || answer.others_loss) {
        lateness_.loss_seen(now_ns);
        patience_ns_ = 0;
    }
    note_overtaken(flight);
    if (flight.retries == 0) {
        rtt_.on_sample(now_ns, now_ns - flight.sent_ns, flight.is_small);
        overtaken_moved_ |= overtaking_.answered(flight.kind, flight.order, flight.sent_ns);
        if (rtt_.timeout_ns() < scan_rto_ns_ / 2) scan_at_ns_ = now_ns;
    } else {
        rtt_.on_ambiguous();
    }
    if (answer.marked) ++counters_.ecn_marked;
    const bool was_last = answer.is_own && flight.retries == 0;
    if (was_last) ++counters_.last;
    if (!flight.is_small) {
        window_->on_answer(now_ns, {rtt_.round_trips(), flights_.size() - flights_.small(),
                                    answer.marked, answer.marked_here, was_last, answer.copy > 0});
        told_ = true;
    }
    note_copies(flight, answer, now_ns);
    note_silence(answer, now_ns);
    leave(lane);
}

void LossRecovery::duplicate(std::uint32_t lane, std::uint32_t copy, std::int64_t now_ns) {
    Flight &flight = flights_[lane];
    flight.resends.duplicated(copy, &counters_);
    if (flight.overtaken_by_ns <= 0) return;
    // Where the packet was sent twice, the first copy was not lost, nor was its result.
    in_vain_ += kInVainWeight * (1.0 - in_vain_);
    reordering_ns_ = std::max(reordering_ns_, flight.overtaken_by_ns);
    reordered_at_ns_ = now_ns;
    flight.overtaken_by_ns = 0;
}

void LossRecovery::withdrawn(std::uint32_t lane) {
    flights_[lane].resends.answered(0, flights_[lane].sent_ns, &counters_);
    leave(lane);
}

inline void LossRecovery::leave(std::uint32_t lane) {
    flights_.remove(lane);
    if (flights_.size() > 0) return;
    scan_at_ns_ = kNever;
    more_probes_ = overtaken_left_ = false;
    probes_left_ = 0;
}

void LossRecovery::settle(std::int64_t now_ns) {
    const std::int64_t before_ns = now_ns - rtt_.timeout_ns();
    for (Flight &flight : flights_.all()) flight.resends.settle_before(before_ns, &counters_);
}

std::size_t LossRecovery::due(std::int64_t now_ns, Resend *resends, std::size_t capacity) {
    if (std::exchange(told_, false)) window_->on_batch(now_ns);
    std::size_t count = 0;
    if (overtaken_moved_) {
        const std::size_t paced = pacer_.allowed(now_ns, window_->pace());
        count = resend_overtaken(now_ns, resends, std::min(capacity, paced));
    }
    if (now_ns >= scan_at_ns_ && count < capacity) {
        count += resend_expired(now_ns, resends + count, capacity - count);
    }
    return count;
}

Resend LossRecovery::resend(std::uint32_t lane, ResendReason reason, std::int64_t now_ns) {
    Flight &flight = flights_[lane];
    if (flight.retries < UINT8_MAX) ++flight.retries;
    ++counters_.retransmissions;
    last_resend_ns_ = flight.sent_ns = now_ns;
    pacer_.sent_again(now_ns, window_->pace(), share_of(flight));
    flights_.remove(lane);
    flights_.add_newest(lane);
    return {lane, flight.resends.add(reason)};
}

// Something was heard: the end of a silence, if it was one.
inline void LossRecovery::note_silence(const Answer &answer, std::int64_t now_ns) {
    quiet_ = false;
    tail_probes_ = 0;
    if (now_ns == heard_ns_) return;  // of one batch
    const std::int64_t silence_ns = now_ns - std::max(heard_ns_, last_sent_ns_);
    if (now_ns - heard_ns_ > rtt_.timeout_ns()) resumed_ns_ = now_ns;
    heard_ns_ = now_ns;
    const bool by_resend = answer.copy > 0 || answer.others_loss;
    if (!by_resend && silence_ns > silence_limit_ns()) {
        lateness_.ended_by_itself(now_ns, silence_ns);
    }
    patience_ns_ = lateness_.patience_ns(now_ns);
}

// The evidence of an overtaken packet.

inline void LossRecovery::note_overtaken(Flight &flight) {
    // No second result came for the packet before: it was lost.
    if (flight.overtaken_by_ns > 0) in_vain_ -= kInVainWeight * in_vain_;
    const bool sent_twice = flight.retries == 1 && flight.timeouts == 0;
    flight.overtaken_by_ns =
        sent_twice ? overtaking_.latest_ns(flight.kind, flight.order) - flight.first_sent_ns : 0;
}

std::int64_t LossRecovery::tolerance_ns(std::int64_t now_ns) {
    if (reordering_ns_ > 0 && now_ns - reordered_at_ns_ > kForgetReorderingNs) {
        reordering_ns_ /= 2;
        reordered_at_ns_ = now_ns;
    }
    // A timeout is enough: the lanes' own timers are a few of them long.
    const std::int64_t learned_ns =
        in_vain_ > kMostInVain ? std::min(reordering_ns_, rtt_.timeout_ns()) : 0;
    std::int64_t half_ns = rtt_.srtt_ns() / 2;
    if (const std::int64_t shortest_ns = rtt_.shortest_ns(); shortest_ns > 0) {
        half_ns = std::min(half_ns, kShortestRoundTrips * shortest_ns);
    }
    return std::max({half_ns, learned_ns, kMinReorderingNs});
}

std::size_t LossRecovery::resend_overtaken(std::int64_t now_ns, Resend *resends,
                                           std::size_t capacity) {
    const std::int64_t tolerance_ns = this->tolerance_ns(now_ns);
    std::size_t count = 0;
    std::uint32_t next = flights_.oldest();
    while (next != kNoLane && count < capacity) {
        const std::uint32_t lane = next;
        const Flight &flight = flights_[lane];
        next = flight.newer;
        if (flight.sent_ns + tolerance_ns >= overtaking_.latest_ns()) break;
        const std::int64_t later_ns = overtaking_.latest_ns(flight.kind, flight.order);
        // It may be another worker that has lost its part: ask less and less often.
        const int doublings = std::min<int>(flight.retries, kMaxToleranceDoublings);
        if (flight.sent_ns + (tolerance_ns << doublings) >= later_ns) continue;
        ++counters_.overtaken;
        resends[count++] = resend(lane, ResendReason::kOvertaken, now_ns);
    }
    if (count > 0) window_->on_loss(now_ns, rtt_.round_trips());
    overtaken_moved_ = overtaken_left_ = count == capacity;
    return count;
}

// The timers.

std::int64_t LossRecovery::lane_deadline_ns(const Flight &flight) const {
    return std::max(flight.sent_ns, resumed_ns_) + kLaneTimeouts * rtt_.timeout_ns(flight.timeouts);
}

std::int64_t LossRecovery::quiet_deadline_ns() const {
    return std::max(heard_ns_, last_resend_ns_) + std::max(rtt_.timeout_ns(), patience_ns_);
}

// Nothing overtakes a loss among the last packets. So once nothing has been heard for two round
// trips, a few go again (as in RFC 8985, section 7.2): what is answered then shows what was lost.
// The timeout comes later, since it bears a late worker's time slices, and backs off.
std::int64_t LossRecovery::tail_deadline_ns() const {
    if (quiet_ || tail_probes_ == kTailProbes) return kNever;
    if (flights_.newest() == kNoLane || rtt_.srtt_ns() == 0) return kNever;
    const std::int64_t newest_ns = flights_[flights_.newest()].sent_ns;
    const std::int64_t silence_ns = std::max(silence_limit_ns() << tail_probes_, patience_ns_);
    return std::max(heard_ns_, newest_ns) + silence_ns;
}

// So long nothing may be heard, where nobody is late, before it is probed what was lost.
std::int64_t LossRecovery::silence_limit_ns() const {
    const std::int64_t usual_ns = rtt_.probe_timeout_ns();
    const std::int64_t shortest_ns = rtt_.shortest_ns();
    if (shortest_ns == 0) return usual_ns;
    return std::min(usual_ns, std::max(kMostSilentRoundTrips * shortest_ns, kTimeSliceNs));
}

std::int64_t LossRecovery::probe_deadline_ns() const {
    return std::min(quiet_deadline_ns(), tail_deadline_ns());
}

// A late worker's results come all together. Where those come that were asked for again, by copies,
// and no others, all was lost: the next round goes out at once, twice as large (as in TCP's slow
// start after a timeout, RFC 5681 section 3.1).
inline void LossRecovery::note_copies(const Flight &flight, const Answer &answer,
                                      std::int64_t now_ns) {
    const bool by_copy = answer.copy > 0 || answer.others_loss;
    if (!by_copy) {
        unanswered_ = probes_left_ = 0;
        more_probes_ = false;
    } else if (flight.retries > 0 && unanswered_ > 0 && --unanswered_ == 0 && probes_left_ == 0) {
        more_probes_ = true;
        scan_at_ns_ = now_ns;
    }
}

std::size_t LossRecovery::resend_expired(std::int64_t now_ns, Resend *resends,
                                         std::size_t capacity) {
    // A round goes on to its end even where the pace makes it longer than a timeout: if another
    // began instead, with the same lanes, the others would have no turn.
    if (probes_left_ > 0) return go_on_probing(now_ns, resends, capacity);
    if (now_ns >= probe_deadline_ns() || more_probes_) {
        return resend_probes(now_ns, resends, capacity);
    }
    std::int64_t next_ns = probe_deadline_ns();
    std::size_t count = 0;
    const bool silent = quiet_ || now_ns - heard_ns_ > rtt_.timeout_ns();
    std::uint32_t next = silent ? kNoLane : flights_.oldest();
    while (next != kNoLane) {
        const std::uint32_t lane = next;
        Flight &flight = flights_[lane];
        next = flight.newer;
        // No deadline of a lane that was sent later comes before this.
        const std::int64_t earliest_ns =
            std::max(flight.sent_ns, resumed_ns_) + kLaneTimeouts * rtt_.timeout_ns();
        if (now_ns < earliest_ns || count == capacity) {
            next_ns = std::min(next_ns, std::max(earliest_ns, now_ns));
            break;
        }
        if (now_ns >= lane_deadline_ns(flight)) {
            rtt_.on_timeout(flight.timeouts);
            if (flight.timeouts < UINT8_MAX) ++flight.timeouts;
            ++counters_.timeouts;
            resends[count++] = resend(lane, ResendReason::kSilence, now_ns);
        }
        next_ns = std::min(next_ns, lane_deadline_ns(flight));
    }
    if (count > 0) window_->on_timeout(now_ns, rtt_.round_trips());
    scan_at_ns_ = next_ns;
    scan_rto_ns_ = rtt_.timeout_ns();
    return count;
}

std::size_t LossRecovery::resend_probes(std::int64_t now_ns, Resend *resends,
                                        std::size_t capacity) {
    const std::uint32_t first_probes = patience_ns_ > 0 ? 1 : kFirstProbes;
    sent_by_ns_ = now_ns;
    longest_unsent_too_ = false;
    if (std::exchange(more_probes_, false)) {
        // What has been sent for less than a round trip may well come.
        sent_by_ns_ = now_ns - std::max<std::int64_t>(rtt_.shortest_ns(), 1);
        probes_ = std::min(2 * probes_, static_cast<std::uint32_t>(flights_.all().size()));
    } else if (now_ns < quiet_deadline_ns()) {
        probes_ = first_probes;
        ++tail_probes_;
    } else {
        const std::uint32_t most = std::max(kMinProbeLimit, flights_.size() / kProbeShare);
        const std::uint32_t more = probes_ < most ? std::min(2 * probes_, most) : 1;
        probes_ = quiet_ ? more : first_probes;
        have_grown_ = (quiet_ && have_grown_) || probes_ == most;
        quiet_ = true;
        longest_unsent_too_ = have_grown_ && probes_ >= kFirstProbes;
        ++counters_.timeouts;
        rtt_.on_timeout(rtt_.backoff());
        window_->on_timeout(now_ns, rtt_.round_trips());
    }
    unanswered_ = 0;
    probes_left_ = probes_;
    return go_on_probing(now_ns, resends, capacity);
}

// As many as the pace allows: rounds that follow each other are as large as windows.
std::size_t LossRecovery::go_on_probing(std::int64_t now_ns, Resend *resends,
                                        std::size_t capacity) {
    // The first of the tensor, not those sent first: of a chunk that several workers lost, all of
    // them have to send their part again.
    std::vector<std::uint32_t> waiting;
    for (std::uint32_t i = flights_.oldest(); i != kNoLane; i = flights_[i].newer) {
        if (flights_[i].sent_ns <= sent_by_ns_) waiting.push_back(i);
    }
    probes_left_ = std::min(probes_left_, static_cast<std::uint32_t>(waiting.size()));
    const std::size_t paced = std::max<std::size_t>(pacer_.allowed(now_ns, window_->pace()), 1);
    const std::size_t count = std::min({capacity, paced, std::size_t{probes_left_}});
    const bool is_last = count > 0 && count == probes_left_;
    const std::uint32_t longest_unsent = waiting.empty() ? kNoLane : waiting.front();
    const auto first = waiting.begin();
    const auto end = first + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(first, end, waiting.end(),
                      [&](auto a, auto b) { return flights_[a].order < flights_[b].order; });
    // Rounds that become no larger would leave out the same lanes each time: one has its turn.
    if (longest_unsent_too_ && is_last && std::find(first, end, longest_unsent) == end) {
        waiting[count - 1] = longest_unsent;
    }
    for (std::size_t i = 0; i < count; ++i) {
        resends[i] = resend(waiting[i], ResendReason::kSilence, now_ns);
    }
    unanswered_ += static_cast<std::uint32_t>(count);
    probes_left_ -= static_cast<std::uint32_t>(count);
    sent_by_ns_ = std::min(sent_by_ns_, now_ns - 1);  // each of them once
    scan_at_ns_ = probes_left_ > 0 ? pacer_.next_ns() : probe_deadline_ns();
    scan_rto_ns_ = rtt_.timeout_ns();
    return count;
}

}  // namespace ina::host
