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

using Channels = std::vector<std::unique_ptr<Channel>>;

// Of all threads together, but for their channels' room.
std::uint32_t in_flight_limit(const WorkerConfig &config, std::uint32_t wanted) {
    const std::uint32_t slots = std::max(config.slots / 2, 1u);
    return wanted == 0 ? slots : std::min(slots, wanted);
}

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

// What a thread's shares may have in flight, of `limit` in all. A queue of the thread's own bounds
// just these: their packets' results come there. With them may come the end of a train whose first
// packet is of another share, less than 64 KiB. For that there is room: channels reckon with
// packets that come one by one, and the packets of a train take half of that (measured on loopback
// and veth).
std::uint32_t part_of(std::uint32_t limit, const Channels &channels, std::size_t index,
                      const WorkerConfig &config) {
    const auto count = static_cast<std::uint32_t>(channels.size());
    const std::uint32_t room = channels[index]->room_packets(config.values_per_packet);
    const bool is_own = channels[index]->one_queue_why().empty();
    const std::uint32_t all = is_own ? limit : std::min(limit, room);
    const std::uint32_t part = all / count + (index < all % count ? 1 : 0);
    return is_own ? std::min(part, room) : part;
}

// Frames of the lanes in a row from `first` on.
PacketMemory frames_of(PacketMemory memory, std::uint32_t first, std::uint32_t lanes) {
    if (memory.base == nullptr || memory.frames < first + lanes) return memory;
    memory.base += memory.stride_bytes * first;
    memory.frames = lanes;
    return memory;
}

}  // namespace

Transport::Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
                     const TransportOptions &options)
    : owner_pid_(::getpid()), window_(window_of(config)),
      order_(window_, std::max(config.values_per_packet, 1u)), halts_(options.halts) {
    const std::uint32_t limit = in_flight_limit(config, options.max_in_flight);
    const std::uint32_t room = channel->room_packets(config.values_per_packet);
    const std::uint32_t wanted = thread_count(options.threads, std::min(limit, room));
    const std::vector<Tree> trees = trees_of(config);
    const std::vector<Way> ways = ways_of(trees);
    Channels channels = channels_of(std::move(channel), window_, wanted, ways);
    const auto count = static_cast<std::uint32_t>(channels.size());
    const std::vector<LaneShare> shares = divide_lanes(window_, count, trees);
    finder_ = ShareFinder(window_, count, shares);
    PacketMemory memory;
    if (count == 1) memory = channels[0]->packet_memory();
    for (const LaneShare &share : shares) {
        WorkerConfig part = config;
        part.first_lane = share.first_lane;
        part.lanes = share.lanes;
        const std::uint64_t of_thread = part_of(limit, channels, share.thread, config);
        const auto most = static_cast<std::uint32_t>(
            std::max<std::uint64_t>(of_thread * share.lanes / (window_ / count), 1));
        shares_.push_back(std::make_unique<Share>(
            share.thread, way_of(ways, trees[share.tree]), part, options.congestion, most,
            frames_of(memory, share.first_lane, share.lanes)));
    }
    for (std::unique_ptr<Channel> &own : channels) {
        workers_.push_back(std::make_unique<Worker>(std::move(own)));
    }
    for (std::size_t i = shares.size(); i-- > 0;) {
        Worker &owner = *workers_[shares[i].thread];
        owner.first_share = i;
        owner.end_share = std::max(owner.end_share, i + 1);
    }
    start();
}

Transport::~Transport() { close(); }

std::shared_ptr<Operation> Transport::submit(TensorRequest request) {
    const std::lock_guard lock(mutex_);
    if (frozen_ && !failed_ && !stopping_) throw std::logic_error("the transport is frozen");
    request.id = next_id_++;
    if (failed_ || stopping_) {
        const auto state = failed_ ? OperationState::kFailed : OperationState::kClosed;
        return operations_.ended(request.id, state);
    }
    ++submitted_;
    submissions_.agree_up_to(agreed_);
    submissions_.add(request);
    const Submission placed = order_.next(request);
    const std::uint32_t takers = shares_of(placed);
    auto operation = operations_.add(request.id, takers);
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        Share &share = *shares_[i];
        share.inbox.push_back(placed);
        const bool is_due = (takers >> i & 1u) != 0 || share.inbox.size() >= kInboxLimit;
        Worker &owner = *workers_[share.owner];
        if (is_due && std::exchange(owner.asleep, false)) owner.sleeper.wake();
    }
    return operation;
}

// Those with lanes that the tensor runs on, as bits.
std::uint32_t Transport::shares_of(const Submission &submission) const {
    if (submission.request.elems == 0) return 0;
    const Place &place = submission.place;
    const std::uint32_t lanes = place.lanes(window_);
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        const WorkerCore &core = shares_[i]->core;
        const std::uint32_t ahead = (core.first_lane() - place.first_lane) & (window_ - 1);
        const std::uint32_t behind = (place.first_lane - core.first_lane()) & (window_ - 1);
        if (ahead < lanes || behind < core.lane_count()) found |= std::uint32_t{1} << i;
    }
    return found;
}

TransportStats Transport::stats() const {
    TransportStats stats;
    std::int64_t last_result_ns = -1;
    stats.gso = stats.gro = true;
    for (const auto &share : shares_) {
        const std::lock_guard lock(share->mutex);
        share->core.settle_resends(now_ns());
        const WorkerCore &core = share->core;
        const WorkerCounters counters = core.counters();
        add_counters(&stats.worker, counters);
        if (share->last_result_ns > last_result_ns) {
            last_result_ns = share->last_result_ns;
            stats.worker.last_seq = counters.last_seq;
        }
        stats.srtt_ns = std::max(stats.srtt_ns, core.recovery().rtt().srtt_ns());
        stats.rto_ns = std::max(stats.rto_ns, core.recovery().rtt().timeout_ns());
        stats.in_flight_limit += core.in_flight_limit();
        stats.in_flight += core.in_flight();
        if (share != shares_[workers_[share->owner]->first_share]) continue;
        add_counters(&stats.channel, share->channel);
        stats.gso = stats.gso && share->gso;
        stats.gro = stats.gro && share->gro;
        stats.passed_on += share->passed_on;
    }
    stats.worker.tensors_done = operations_.done();
    stats.window = window_;
    stats.refused_since_result = refused_;
    const Channel &channel = *workers_[0]->channel;
    stats.kind = channel.kind();
    stats.threads = static_cast<std::uint32_t>(workers_.size());
    stats.one_queue_why = channel.one_queue_why();
    stats.queues = stats.one_queue_why.empty() ? stats.threads : 1;
    for (std::size_t i = 0; i < stats.queues; ++i) {
        stats.receive_buffer_bytes += workers_[i]->channel->receive_buffer_bytes();
    }
    const std::lock_guard lock(mutex_);
    stats.worker.tensors_submitted = submitted_;
    return stats;
}

std::optional<StallReport> Transport::failure() const {
    std::uint32_t in_flight = 0;
    for (const auto &share : shares_) {
        const std::lock_guard lock(share->mutex);
        in_flight += share->core.in_flight();
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
    std::vector<LaneSnapshot> parts;
    for (const auto &share : shares_) {
        const std::lock_guard lock(share->mutex);
        parts.push_back(share->core.lanes(now_ns()));
    }
    return parts.size() == 1 ? std::move(parts[0]) : merge_lanes(parts);
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
    std::unique_lock lock(mutex_);
    if (failed_ || stopping_) return false;
    frozen_ = true;
    stopped_.notify_all();
    wake_all();
    stopped_.wait(lock, [&] { return running_ == 0; });
    lock.unlock();
    // What came since the transport halted.
    for (const auto &share : shares_) {
        const std::lock_guard owned(share->mutex);
        const std::lock_guard own(mutex_);
        for (const Submission &placed : share->inbox) share->core.submit(placed, now_ns());
        share->inbox.clear();
    }
    lock.lock();
    return !failed_ && !stopping_;
}

// With mutex_ held.
void Transport::check_frozen() const {
    if (!frozen_ || running_ > 0 || stopping_)
        throw std::logic_error("the transport is not frozen");
}

// Of a lane that there is not: any; it says so.
Share &Transport::share_of(std::uint32_t lane) const {
    return *shares_[finder_.of(std::min(lane, window_ - 1))];
}

LaneResult Transport::lane_result(std::uint32_t lane) const {
    Share &share = share_of(lane);
    const std::lock_guard lock(share.mutex);
    const std::lock_guard own(mutex_);
    check_frozen();
    return share.core.lane_result(lane);
}

std::vector<PendingTensor> Transport::pending() const {
    std::vector<std::vector<PendingTensor>> parts;
    for (const auto &share : shares_) {
        const std::lock_guard lock(share->mutex);
        const std::lock_guard own(mutex_);
        check_frozen();
        parts.push_back(share->core.pending());
    }
    return parts.size() == 1 ? std::move(parts[0]) : merge_pending(parts);
}

void Transport::put_result(std::uint32_t lane, std::uint32_t seq, const void *data,
                           std::size_t bytes) {
    Share &share = share_of(lane);
    const std::lock_guard lock(share.mutex);
    const std::lock_guard own(mutex_);
    check_frozen();
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
