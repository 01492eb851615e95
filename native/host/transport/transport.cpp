#include "host/transport/transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/clock.hpp"

namespace ina::host {
namespace {

// Tensors that a share has no part in wait in its inbox until it is looked at, or there are so
// many.
constexpr std::size_t kInboxLimit = 64;

constexpr std::uint32_t kNotPlacedBit = 63;  // of an operation that no share has yet

using Channels = std::vector<std::unique_ptr<Channel>>;

// The largest power of two that is neither above `wanted` nor above the packets in flight.
std::uint32_t thread_count(std::uint32_t wanted, std::uint32_t in_flight) {
    const std::uint32_t most = std::min({wanted, in_flight, Transport::kMaxThreads});
    std::uint32_t count = 1;
    while (2 * count <= most) count *= 2;
    return count;
}

Channels channels_of(std::unique_ptr<Channel> first, std::uint32_t lanes, std::uint32_t threads,
                     const std::vector<Way> &ways) {
    Channels channels;
    if (threads > 1 || ways.size() > 1) channels = first->divide({lanes, threads}, ways);
    channels.insert(channels.begin(), std::move(first));
    return channels;
}

}  // namespace

Transport::Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
                     const TransportOptions &options)
    : owner_pid_(::getpid()), halts_(options.halts) {
    const std::uint32_t window = window_of(config);
    const std::uint32_t most = most_in_flight(config, options.max_in_flight);
    const std::uint32_t room = channel->room_packets(config.values_per_packet);
    const std::uint32_t wanted = thread_count(options.threads, std::min(most, room));
    add_ways(trees_of(config), &layout_.ways);
    for (std::unique_ptr<Channel> &own :
         channels_of(std::move(channel), window, wanted, layout_.ways)) {
        workers_.push_back(std::make_unique<Worker>(std::move(own)));
        workers_.back()->number = workers_.size() - 1;
    }
    PacketMemory memory;
    if (workers_.size() == 1) {
        memory = first_frames(workers_[0]->channel->packet_memory(), window);
    }
    layout_.version = 1;
    layout_.mappings.push_back(std::make_shared<Mapping>(config, most, options.congestion,
                                                         channels(), layout_.ways, memory, 0));
    layout_.parts = layout_.mappings[0]->parts();
    version_ = layout_.version;
    for (const auto &worker : workers_) {
        worker->ways = layout_.ways;
        worker->parts = layout_.parts;
    }
    start();
}

Transport::~Transport() { close(); }

std::vector<Channel *> Transport::channels() const {
    std::vector<Channel *> all;
    for (const auto &worker : workers_) all.push_back(worker->channel.get());
    return all;
}

Transport::Mappings Transport::mappings_now() const {
    const std::lock_guard lock(mutex_);
    return layout_.mappings;
}

std::shared_ptr<Operation> Transport::submit(TensorRequest request) {
    const std::lock_guard lock(mutex_);
    if (frozen_ && !failed_ && !stopping_) throw std::logic_error("the transport is frozen");
    request.id = next_id_++;
    if (failed_ || stopping_) {
        const auto state = failed_ ? OperationState::kFailed : OperationState::kClosed;
        return operations_.ended(request.id, state);
    }
    ++submitted_;
    submit_times_.add(now_ns());
    submissions_.agree_up_to(agreed_);
    submissions_.add(request);
    // What is the newer mapping's, before it is known what was submitted before, waits for that.
    const bool is_new = first_of_new_ != 0 && request.id >= first_of_new_;
    auto operation = operations_.add(request.id, request.elems,
                                     request.elems > 0 ? std::uint64_t{1} << kNotPlacedBit : 0);
    if (!is_new || is_cut_) place(*layout_.mappings[is_new ? 1 : 0], request);
    return operation;
}

// With mutex_ held.
void Transport::place(Mapping &mapping, const TensorRequest &request) {
    const Submission placed = mapping.order.next(request);
    const std::uint64_t takers = mapping.takers(placed);
    operations_.reassign(request.id, takers);
    for (std::size_t i = 0; i < mapping.shares.size(); ++i) {
        Share &share = *mapping.shares[i];
        share.inbox.push_back(placed);
        const bool is_due = (takers & mapping.bit_of(i)) != 0 || share.inbox.size() >= kInboxLimit;
        Worker &owner = *workers_[share.owner];
        if (is_due && std::exchange(owner.asleep, false)) owner.sleeper.wake();
    }
}

// After the shares' counters were read: of a result that counts there its packet counts here. Who
// compares both takes it else for one that did not come this way (SharedResults in Python).
void Transport::tell_channels(TransportStats *stats) const {
    const std::lock_guard lock(mutex_);
    stats->gso = stats->gro = true;
    for (const auto &worker : workers_) {
        add_counters(&stats->channel, worker->told.channel);
        stats->gso = stats->gso && worker->told.gso;
        stats->gro = stats->gro && worker->told.gro;
        stats->passed_on += worker->told.passed_on;
    }
}

TransportStats Transport::stats() const {
    TransportStats stats;
    Mappings mappings;
    const Mapping *current = nullptr;
    {
        const std::lock_guard lock(mutex_);
        mappings = layout_.mappings;
        if (retiring_) mappings.insert(mappings.begin(), retiring_);
        current = &this->current();
        stats.worker = retired_;
        stats.worker.tensors_submitted = submitted_;
    }
    std::int64_t last_result_ns = -1;
    for (const auto &mapping : mappings) {
        for (const auto &share : mapping->shares) {
            const std::lock_guard lock(share->mutex);
            share->core.settle_resends(now_ns());
            const WorkerCore &core = share->core;
            const WorkerCounters counters = core.counters();
            add_counters(&stats.worker, counters);
            if (core.results() > 0 && share->last_result_ns > last_result_ns) {
                last_result_ns = share->last_result_ns;
                stats.worker.last_seq = counters.last_seq;
            }
            stats.in_flight += core.in_flight();
            if (mapping.get() != current) continue;
            stats.srtt_ns = std::max(stats.srtt_ns, core.recovery().rtt().srtt_ns());
            stats.rto_ns = std::max(stats.rto_ns, core.recovery().rtt().timeout_ns());
            stats.in_flight_limit += core.in_flight_limit();
            const congestion::RoundTrips &trips = core.recovery().rtt().round_trips();
            stats.mean_ns = std::max(stats.mean_ns, trips.mean_ns);
            if (trips.shortest_ns == 0) continue;
            stats.shortest_ns = stats.shortest_ns == 0
                                    ? trips.shortest_ns
                                    : std::min(stats.shortest_ns, trips.shortest_ns);
        }
    }
    tell_channels(&stats);
    stats.worker.tensors_done = operations_.done();
    stats.rhythm = operations_.rhythm();
    stats.window = current->window;
    stats.refused_since_result = refused_;
    const Channel &channel = *workers_[0]->channel;
    stats.kind = channel.kind();
    stats.threads = static_cast<std::uint32_t>(workers_.size());
    stats.one_queue_why = channel.one_queue_why();
    stats.queues = stats.one_queue_why.empty() ? stats.threads : 1;
    for (std::size_t i = 0; i < stats.queues; ++i) {
        stats.receive_buffer_bytes += workers_[i]->channel->receive_buffer_bytes();
    }
    return stats;
}

std::optional<StallReport> Transport::failure() const {
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

std::optional<Mismatch> Transport::mismatch() const {
    const std::lock_guard lock(mutex_);
    return mismatch_;
}

std::optional<Corruption> Transport::corruption() const {
    const std::lock_guard lock(mutex_);
    return corruption_;
}

std::optional<bool> Transport::wait_halted(std::int64_t timeout_ns) const {
    std::unique_lock lock(mutex_);
    const auto timeout = std::chrono::nanoseconds(timeout_ns);
    if (!stopped_.wait_for(lock, timeout, [&] { return is_ending(); })) return std::nullopt;
    return halted_ && !failed_ && !frozen_ && !stopping_;
}

std::vector<TensorRequest> Transport::submissions() const {
    const std::lock_guard lock(mutex_);
    Submissions known = submissions_;
    known.agree_up_to(agreed_);
    return known.list();
}

LaneSnapshot Transport::lanes() const {
    LaneSnapshot snapshot;
    for (const auto &mapping : mappings_now()) {
        std::vector<LaneSnapshot> parts;
        for (const auto &share : mapping->shares) {
            const std::lock_guard lock(share->mutex);
            parts.push_back(share->core.lanes(now_ns()));
        }
        LaneSnapshot its = parts.size() == 1 ? std::move(parts[0]) : merge_lanes(parts);
        const bool is_first = snapshot.seqs.empty();
        const bool goes_on_here = its.oldest.id != 0;
        if (is_first || goes_on_here) snapshot = std::move(its);
        if (goes_on_here) break;
    }
    return snapshot;
}

void Transport::set_congestion(const std::optional<congestion::Choice> &choice,
                               std::uint32_t most_packets) {
    if (choice) congestion::make_window(*choice, {1, 1});  // throws before anything has changed
    const std::lock_guard remapping(remap_mutex_);
    most_packets_ = most_packets;
    for (const auto &mapping : mappings_now()) {
        mapping->set_congestion(choice ? &*choice : nullptr, most_packets);
    }
    const std::lock_guard lock(mutex_);
    if (!stopping_) wake_all();  // where there is room now, nothing else might
}

void Transport::take_own_results() {
    const std::lock_guard closing(close_mutex_);
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
    }
    for (const auto &worker : workers_) worker->channel->take_own_results();
}

void Transport::fail() {
    const std::lock_guard lock(mutex_);
    if (failed_ || stopping_) return;
    failed_ = true;
    stopped_.notify_all();
    if (running_ > 0) {
        wake_all();
    } else {
        operations_.end_all(OperationState::kFailed);  // frozen, or halted
    }
}

bool Transport::freeze() {
    const std::lock_guard remapping(remap_mutex_);
    std::unique_lock lock(mutex_);
    if (failed_ || stopping_) return false;
    frozen_ = true;
    stopped_.notify_all();
    wake_all();
    stopped_.wait(lock, [&] { return running_ == 0; });
    if (first_of_new_ != 0 && !is_cut_) place_from(first_of_new_, *layout_.mappings.back());
    lock.unlock();
    // What came since the transport halted, and what could not be sent yet.
    for (const auto &mapping : mappings_now()) {
        for (const auto &share : mapping->shares) {
            const std::lock_guard owned(share->mutex);
            const std::lock_guard own(mutex_);
            for (const Submission &placed : share->inbox) share->core.submit(placed, now_ns());
            share->inbox.clear();
        }
    }
    lock.lock();
    return !failed_ && !stopping_;
}

// With mutex_ held.
void Transport::check_frozen() const {
    if (!frozen_ || running_ > 0 || stopping_)
        throw std::logic_error("the transport is not frozen");
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> Transport::mappings() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const auto &mapping : mappings_now()) found.emplace_back(mapping->epoch, mapping->window);
    return found;
}

// While frozen, nothing of it goes.
Mapping &Transport::mapping_of(std::uint32_t epoch) const {
    const std::lock_guard lock(mutex_);
    check_frozen();
    for (const auto &mapping : layout_.mappings) {
        if (mapping->epoch == epoch) return *mapping;
    }
    throw std::invalid_argument("there is no mapping of epoch " + std::to_string(epoch));
}

LaneResult Transport::lane_result(std::uint32_t epoch, std::uint32_t lane) const {
    Share &share = mapping_of(epoch).share_of(lane);
    const std::lock_guard lock(share.mutex);
    return share.core.lane_result(lane);
}

std::vector<PendingTensor> Transport::pending() const {
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

void Transport::put_result(std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq,
                           const void *data, std::size_t bytes) {
    Share &share = mapping_of(epoch).share_of(lane);
    const std::lock_guard lock(share.mutex);
    share.core.put_result(lane, seq, data, bytes);
}

void Transport::end_operation(std::uint64_t id, bool done) {
    const std::lock_guard lock(mutex_);
    check_frozen();
    if (!operations_.end(id, done ? OperationState::kDone : OperationState::kFailed)) {
        throw std::invalid_argument("operation " + std::to_string(id) + " is not pending");
    }
}

std::vector<std::uint64_t> Transport::wait_watched(std::int64_t timeout_ns) {
    return operations_.wait_watched(timeout_ns);
}

void Transport::wake_all() const {
    for (const auto &worker : workers_) worker->sleeper.wake();
}

void Transport::close() {
    if (::getpid() != owner_pid_) {
        // The locks may be held by threads that this process does not have. The transport's own are
        // some of them: the handles are neither joined nor detached but leaked, for pthread would
        // look into memory that may by now belong to another thread.
        for (const auto &worker : workers_) {
            if (!worker->thread.joinable()) continue;
            static_cast<void>(new std::thread(std::move(worker->thread)));
        }
        close_descriptors();
        return;
    }
    const std::lock_guard closing(close_mutex_);
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        stopped_.notify_all();
        adopted_.notify_all();
        if (!workers_[0]->thread.joinable()) return;
        wake_all();
    }
    for (const auto &worker : workers_) worker->thread.join();
    const std::lock_guard lock(mutex_);
    operations_.end_all(OperationState::kClosed);  // what a frozen transport still has
    operations_.close();
    close_descriptors();
}

void Transport::close_descriptors() {
    for (const auto &worker : workers_) {
        worker->sleeper.close();
        worker->channel->close();
    }
}

}  // namespace ina::host
