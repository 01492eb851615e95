#include "host/engine/engine.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace ina::host {
namespace {

// Bits of an operation, for the shares of each of two mappings.
constexpr std::uint32_t kBitsOfMapping = 32;

}  // namespace

TransportEngine::TransportEngine(const WorkerConfig &config, const TransportOptions &options,
                                 std::vector<ResultQueue> queues, const PacketMemory &memory,
                                 std::uint32_t stations, bool is_watched)
    : queues_(std::move(queues)), memory_(memory), operations_(is_watched), course_(&operations_),
      left_to_adopt_(stations), asleep_(queues_.size()), halts_(options.halts), stations_(stations),
      working_(stations) {
    add_ways(trees_of(config), &course_.layout.ways);
    course_.layout.mappings.push_back(std::make_shared<Mapping>(
        config, most_in_flight(config, options.max_in_flight), options.congestion, queues_,
        course_.layout.ways, first_frames(memory_, window_of(config)), 0));
    course_.layout.parts = course_.layout.mappings[0]->parts();
    version_ = course_.layout.version = 1;
}

std::shared_ptr<Operation> TransportEngine::submit(TensorRequest request) {
    std::shared_ptr<Operation> operation;
    std::vector<std::size_t> with_little;  // threads
    {
        const std::lock_guard lock(mutex_);
        if (frozen_ && !failed_ && !stopping_) throw std::logic_error("the transport is frozen");
        if (failed_ || stopping_) {
            const auto state = failed_ ? OperationState::kFailed : OperationState::kClosed;
            return operations_.ended(course_.take_id(), state);
        }
        course_.submissions().agree_up_to(agreed_);
        operation = course_.submit(&request, now_ns());
        for (const Course::Due &due : course_.take_due()) {
            if (std::exchange(asleep_[due.thread], 0) == 0) continue;
            if (due.is_little) {
                with_little.push_back(due.thread);
            } else {
                wake(due.thread);
            }
        }
    }
    for (const std::size_t thread : with_little) work_once(thread);
    attend();
    return operation;
}

void TransportEngine::work_once(std::size_t thread) {
    const std::lock_guard lock(mutex_);
    wake(thread);
}

EngineStats TransportEngine::stats() const {
    EngineStats stats;
    Mappings mappings;
    const Mapping *current = nullptr;
    {
        const std::lock_guard lock(mutex_);
        mappings = course_.layout.mappings;
        if (retiring_) mappings.insert(mappings.begin(), retiring_);
        current = &course_.layout.current();
        stats.worker = retired_;
        stats.worker.tensors_submitted = course_.submitted();
    }
    add_shares(mappings, current, now_ns(), &stats);
    stats.worker.tensors_done = operations_.done();
    stats.rhythm = operations_.rhythm(now_ns());
    stats.window = current->window;
    stats.refused = refused_;
    stats.refused_since_result = refused_since_result_;
    stats.spent = spent_;
    return stats;
}

std::optional<StallReport> TransportEngine::failure() const {
    std::uint32_t in_flight = 0;
    for (const auto &mapping : mappings_now()) {
        for (const auto &share : mapping->shares) {
            const std::lock_guard lock(share->mutex);
            in_flight += share->core.in_flight();
        }
    }
    const std::lock_guard lock(mutex_);
    std::optional<StallReport> report = failure_;
    if (report) report->in_flight = in_flight;
    return report;
}

std::optional<bool> TransportEngine::wait_halted(std::int64_t timeout_ns) const {
    std::unique_lock lock(mutex_);
    const auto timeout = std::chrono::nanoseconds(timeout_ns);
    if (!stopped_.wait_for(lock, timeout, [&] { return has_ended(); })) return std::nullopt;
    return halted_ && !failed_ && !frozen_ && !stopping_;
}

std::vector<TensorRequest> TransportEngine::submissions() const {
    const std::lock_guard lock(mutex_);
    Submissions known = course_.submissions();
    known.agree_up_to(agreed_);
    return known.list();
}

LaneSnapshot TransportEngine::lanes() const { return snapshot_of(mappings_now(), now_ns()); }

void TransportEngine::set_congestion(const std::optional<congestion::Choice> &choice,
                                     std::uint32_t most_packets) {
    if (choice) congestion::make_control(*choice, {1, 1});  // throws before anything has changed
    {
        const std::lock_guard remapping(remap_mutex_);
        most_packets_ = most_packets;
        for (const auto &mapping : mappings_now()) {
            mapping->set_congestion(choice ? &*choice : nullptr, most_packets);
        }
        const std::lock_guard lock(mutex_);
        if (!stopping_) wake_all();  // where there is room now, nothing else might
    }
    attend();
}

// How it ends.

void TransportEngine::fail() {
    {
        const std::lock_guard lock(mutex_);
        if (failed_ || stopping_) return;
        failed_ = true;
        stopped_.notify_all();
        if (working_ > 0) {
            wake_all();
        } else {
            operations_.end_all(OperationState::kFailed, now_ns());  // frozen, or halted
        }
    }
    attend();
}

void TransportEngine::note_failure(const WorkerCore &core) {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return;
    failure_ = core.stall();
    mismatch_ = core.mismatch();
    corruption_ = core.corruption();
    (halts_ && (corruption_ || mismatch_) ? halted_ : failed_) = true;
    stopped_.notify_all();
    wake_all();
}

void TransportEngine::stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
    adopted_.notify_all();
    wake_all();
}

void TransportEngine::end_closed() {
    operations_.end_all(OperationState::kClosed, now_ns());  // what a frozen engine still has
    operations_.close();
}

bool TransportEngine::freeze() {
    const std::lock_guard remapping(remap_mutex_);
    {
        const std::lock_guard lock(mutex_);
        if (failed_ || stopping_) return false;
        frozen_ = true;
        stopped_.notify_all();
        wake_all();
    }
    attend();
    {
        std::unique_lock lock(mutex_);
        stopped_.wait(lock, [&] { return working_ == 0; });
        const Layout &layout = course_.layout;
        if (layout.first_of_new != 0 && !layout.is_cut) {
            course_.place_from(layout.first_of_new, *layout.mappings.back());
        }
    }
    // What came since the engine halted, and what could not be sent yet.
    for (const auto &mapping : mappings_now()) {
        for (const auto &share : mapping->shares) {
            const std::lock_guard owned(share->mutex);
            const std::lock_guard own(mutex_);
            for (const Submission &placed : share->inbox) share->core.submit(placed, now_ns());
            share->inbox.clear();
        }
    }
    const std::lock_guard lock(mutex_);
    return !failed_ && !stopping_;
}

// With mutex_ held.
void TransportEngine::check_frozen() const {
    if (!frozen_ || working_ > 0 || stopping_)
        throw std::logic_error("the transport is not frozen");
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> TransportEngine::mappings() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const auto &mapping : mappings_now()) found.emplace_back(mapping->epoch, mapping->window);
    return found;
}

// While frozen, nothing of it goes.
Mapping &TransportEngine::mapping_of(std::uint32_t epoch) const {
    const std::lock_guard lock(mutex_);
    check_frozen();
    for (const auto &mapping : course_.layout.mappings) {
        if (mapping->epoch == epoch) return *mapping;
    }
    throw std::invalid_argument("there is no mapping of epoch " + std::to_string(epoch));
}

LaneResult TransportEngine::lane_result(std::uint32_t epoch, std::uint32_t lane) const {
    Share &share = mapping_of(epoch).share_of(lane);
    const std::lock_guard lock(share.mutex);
    return share.core.lane_result(lane);
}

std::vector<PendingTensor> TransportEngine::pending() const {
    std::vector<std::vector<PendingTensor>> parts;
    for (const auto &mapping : mappings_now()) {
        for (const auto &share : mapping->shares) {
            const std::lock_guard lock(share->mutex);
            const std::lock_guard own(mutex_);
            check_frozen();
            parts.push_back(share->core.pending());
        }
    }
    return parts.size() == 1 ? std::move(parts[0]) : merge_pending(parts);
}

std::vector<std::uint8_t> TransportEngine::own_part(std::uint32_t epoch, std::uint32_t lane,
                                                    std::uint32_t seq) const {
    Share &share = mapping_of(epoch).share_of(lane);
    const std::lock_guard lock(share.mutex);
    return share.core.own_part(lane, seq);
}

void TransportEngine::put_result(std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq,
                                 const void *data, std::size_t bytes, bool non_finite) {
    Share &share = mapping_of(epoch).share_of(lane);
    const std::lock_guard lock(share.mutex);
    share.core.put_result(lane, seq, data, bytes, non_finite);
}

void TransportEngine::end_operation(std::uint64_t id, bool done) {
    const std::lock_guard lock(mutex_);
    check_frozen();
    const auto state = done ? OperationState::kDone : OperationState::kFailed;
    if (!operations_.end(id, state, now_ns())) {
        throw std::invalid_argument("operation " + std::to_string(id) + " is not pending");
    }
}

// What a station does.

void TransportEngine::adopt(Station &station, Layout layout, const std::string &error) {
    station.take(std::move(layout));
    const std::lock_guard lock(mutex_);
    if (station.layout.version == course_.layout.version) --left_to_adopt_;
    if (!error.empty()) redirect_error_ = error;
    adopted_.notify_all();
}

void TransportEngine::accepted(const Work &work) {
    Share &share = *work.share;
    const std::uint64_t results = share.core.results();
    if (results == std::exchange(share.results, results)) return;
    share.last_result_ns = share.time_ns;
    work.mapping->progress_ns = share.time_ns;
    refused_since_result_ = 0;
    const std::uint64_t agreed = share.core.agreed();
    std::uint64_t before = agreed_;
    while (before < agreed && !agreed_.compare_exchange_weak(before, agreed)) {
    }
    operations_.share_done(work.bit, share.core.take_completions(), share.time_ns);
}

std::optional<std::vector<Submission>>
TransportEngine::take_inbox(const Work &work, std::optional<std::size_t> thread) {
    Share &share = *work.share;
    std::vector<Submission> taken;
    {
        const std::lock_guard lock(mutex_);
        if (thread) asleep_[*thread] = 0;
        if (has_ended()) return std::nullopt;
        if (work.mapping->is_open) taken.swap(share.inbox);
    }
    if (taken.empty()) return taken;
    share.time_ns = std::max(share.time_ns, now_ns());
    for (const Submission &placed : taken) share.core.submit(placed, share.time_ns);
    // Without a part in them.
    operations_.share_done(work.bit, share.core.take_completions(), share.time_ns);
    return taken;
}

// A share that waits is not stalled while others have results: of two mappings, the newer may have
// to wait for the older one, but not the other way round.
void TransportEngine::note_progress(const Station &station, const Work &work) const {
    if (station.work.size() == 1) return;
    work.share->core.note_progress(station.layout.mappings.front()->progress_ns);
    work.share->core.note_progress(work.mapping->progress_ns);
}

bool TransportEngine::look(std::size_t thread) {
    const std::lock_guard lock(mutex_);
    asleep_[thread] = 0;
    return !has_ended();
}

bool TransportEngine::may_sleep(const Station &station) {
    const std::lock_guard lock(mutex_);
    if (has_ended() || course_.layout.version != station.layout.version) return false;
    for (const std::uint32_t i : station.own) {
        const Work &work = station.work[i];
        if (work.mapping->is_open && !work.share->inbox.empty()) return false;
    }
    asleep_[station.number] = 1;
    return true;
}

void TransportEngine::leave(const Station &station) {
    for (const std::uint32_t i : station.own) {
        Share &share = *station.work[i].share;
        const std::lock_guard owned(share.mutex);
        const std::lock_guard lock(mutex_);
        if (frozen_) {
            for (const Submission &placed : share.inbox) share.core.submit(placed, now_ns());
        }
        if (frozen_ || !halted_) share.inbox.clear();
    }
    const std::lock_guard lock(mutex_);
    if (--working_ > 0) return;
    if (failed_ || stopping_) {
        const auto state = failed_ ? OperationState::kFailed : OperationState::kClosed;
        operations_.end_all(state, now_ns());
    }
    stopped_.notify_all();
    adopted_.notify_all();
}

// With mutex_ held.
void TransportEngine::wake_all() {
    for (std::size_t thread = 0; thread < asleep_.size(); ++thread) wake(thread);
}

// A change of mapping.

void TransportEngine::begin_remap(const WorkerConfig &config, std::uint32_t max_in_flight,
                                  const congestion::Choice &congestion) {
    const std::lock_guard remapping(remap_mutex_);
    Layout before;
    {
        const std::lock_guard lock(mutex_);
        check_remap(false, false);
        before = course_.layout;
    }
    Layout layout = before;
    const Mapping &older = *layout.mappings[0];
    if (static_cast<std::uint16_t>(config.epoch) == static_cast<std::uint16_t>(older.epoch)) {
        throw std::invalid_argument("the new mapping has the epoch of the old one, " +
                                    std::to_string(config.epoch));
    }
    layout.ways = ways_of_both(layout.ways, older.trees, trees_of(config));
    WorkerConfig own = older.warmed(config);
    own.framing = older.framing;
    const auto newer = std::make_shared<Mapping>(
        own, most_in_flight(config, max_in_flight), congestion, queues_, layout.ways,
        frames_beside(memory_, older.memory, window_of(config)),
        older.first_bit == 0 ? kBitsOfMapping : 0);
    newer->set_congestion(nullptr, most_packets_);
    newer->is_open = false;
    layout.mappings.push_back(newer);
    publish(layout);
    await_adoption();
    std::string refused;
    {
        const std::lock_guard lock(mutex_);
        refused.swap(redirect_error_);
    }
    if (refused.empty()) return;
    publish(before);
    throw std::runtime_error(refused);
}

std::uint64_t TransportEngine::reserve(std::int64_t news_ns) {
    const std::lock_guard remapping(remap_mutex_);
    const std::lock_guard lock(mutex_);
    check_works();
    return course_.reserve(now_ns(), news_ns);
}

void TransportEngine::cut_over(std::uint64_t first, bool may_send) {
    const std::lock_guard remapping(remap_mutex_);
    Layout layout;
    {
        const std::lock_guard lock(mutex_);
        check_works();
        course_.set_first(first, agreed_);
        layout = course_.layout;
    }
    Mapping &newer = *layout.mappings[1];
    if (!layout.is_cut) take_back(first, *layout.mappings[0]);
    layout.parts = newer.parts();
    {
        const std::lock_guard lock(mutex_);
        if (!course_.layout.is_cut) course_.place_from(first, newer);
        course_.layout.is_cut = layout.is_cut = true;
        newer.is_open = newer.is_open || may_send;
    }
    publish(layout);
}

bool TransportEngine::wait_cut(std::int64_t timeout_ns) {
    std::uint64_t first = 0;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, true);
        first = course_.layout.first_of_new;
    }
    return operations_.wait_before(first, timeout_ns);
}

void TransportEngine::end_remap() {
    const std::lock_guard remapping(remap_mutex_);
    Layout layout;
    std::shared_ptr<Mapping> older;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, true);
        if (!operations_.wait_before(course_.layout.first_of_new, 0)) {
            throw std::logic_error("operations before " +
                                   std::to_string(course_.layout.first_of_new) + " are not done");
        }
        layout = course_.layout;
        older = layout.mappings[0];
        layout.mappings.erase(layout.mappings.begin());
        layout.mappings[0]->is_open = true;
        layout.is_cut = false;
        layout.first_of_new = 0;
    }
    publish(layout, older);
    await_adoption();  // what it counted is then final
    WorkerCounters counted;
    for (const auto &share : older->shares) {
        const std::lock_guard lock(share->mutex);
        add_counters(&counted, share->core.counters());
    }
    const std::lock_guard lock(mutex_);
    add_counters(&retired_, counted);
    retiring_.reset();
}

void TransportEngine::cancel_remap() {
    const std::lock_guard remapping(remap_mutex_);
    Layout layout;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, false);
        layout = course_.layout;
        layout.mappings.pop_back();
        if (layout.first_of_new != 0) course_.place_from(layout.first_of_new, *layout.mappings[0]);
        course_.layout.first_of_new = layout.first_of_new = 0;
    }
    publish(layout);
}

// With mutex_ held, too.
void TransportEngine::check_works() const {
    if (has_ended()) throw std::logic_error("the transport has ended, or is frozen");
}

void TransportEngine::check_remap(bool has_second, bool is_cut) const {
    check_works();
    course_.check(has_second, is_cut);
}

// Out of the inboxes and the cores.
void TransportEngine::take_back(std::uint64_t first, const Mapping &mapping) {
    for (const auto &share : mapping.shares) {
        const std::lock_guard owned(share->mutex);
        {
            const std::lock_guard lock(mutex_);
            std::vector<Submission> &inbox = share->inbox;
            inbox.erase(std::remove_if(inbox.begin(), inbox.end(),
                                       [&](const auto &one) { return one.request.id >= first; }),
                        inbox.end());
        }
        share->core.withdraw_from(first);
    }
}

// retiring: a mapping that was let go of, and may still count.
void TransportEngine::publish(const Layout &layout, std::shared_ptr<Mapping> retiring) {
    {
        const std::lock_guard lock(mutex_);
        const std::uint64_t version = course_.layout.version + 1;
        course_.layout = layout;
        version_ = course_.layout.version = version;
        left_to_adopt_ = stations_;
        course_.take_due();  // all are woken
        retiring_ = std::move(retiring);
        wake_all();
    }
    attend();
}

// Until each station works by what was published last, or the work ends.
void TransportEngine::await_adoption() {
    std::unique_lock lock(mutex_);
    adopted_.wait(lock, [&] { return has_ended() || left_to_adopt_ == 0; });
}

}  // namespace ina::host
