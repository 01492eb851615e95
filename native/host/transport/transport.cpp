#include "host/transport/transport.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "common/clock.hpp"
#include "common/short_slices.hpp"

namespace ina::host {
namespace {

using Channels = std::vector<std::unique_ptr<Channel>>;

// With more packets in flight the session's own thread does the work, not who waits.
constexpr std::uint32_t kFewInFlight = 8;

// The largest power of two that is neither above `wanted` nor above the packets in flight.
std::uint32_t thread_count(std::uint32_t wanted, std::uint32_t in_flight) {
    const std::uint32_t most = std::min({wanted, in_flight, Transport::kMaxThreads});
    std::uint32_t count = 1;
    while (2 * count <= most) count *= 2;
    return count;
}

// One for each thread.
Channels channels_of(std::unique_ptr<Channel> first, const WorkerConfig &config,
                     const TransportOptions &options) {
    const std::uint32_t window = window_of(config);
    const std::uint32_t most = most_in_flight(config, options.max_in_flight);
    const std::uint32_t room = first->room_packets(config.values_per_packet);
    const std::uint32_t threads = thread_count(options.threads, std::min(most, room));
    std::vector<Way> ways;
    add_ways(trees_of(config), &ways);
    const LaneParts parts{window, threads,
                          static_cast<std::uint32_t>(config.framing.prefix_bytes())};
    Channels channels;
    if (threads > 1 || ways.size() > 1) channels = first->divide(parts, ways);
    channels.insert(channels.begin(), std::move(first));
    return channels;
}

std::vector<ResultQueue> queues_of(const Channels &channels, const WorkerConfig &config) {
    std::vector<ResultQueue> queues;
    for (const auto &channel : channels) {
        queues.push_back(
            {channel->room_packets(config.values_per_packet), channel->one_queue_why().empty()});
    }
    return queues;
}

PacketMemory memory_of(const Channels &channels) {
    return channels.size() == 1 ? channels[0]->packet_memory() : PacketMemory{};
}

// A batch thread (sched(7)) does not preempt whoever wakes it. On a machine whose cores are all
// busy the switch then finishes its batch instead of losing its core to each worker that it wakes,
// and this thread finds more packets when it runs. Best effort; where a core is free it changes
// nothing.
void give_way() { take_short_slices(SCHED_BATCH); }

void add_counters(ChannelCounters *sum, const ChannelCounters &share) {
    for (const auto field :
         {&ChannelCounters::send_calls, &ChannelCounters::receive_calls, &ChannelCounters::refused,
          &ChannelCounters::unreachable, &ChannelCounters::send_drops,
          &ChannelCounters::shared_packets, &ChannelCounters::damaged, &ChannelCounters::spent}) {
        sum->*field += share.*field;
    }
}

}  // namespace

Transport::Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
                     const TransportOptions &options)
    : Transport(channels_of(std::move(channel), config, options), config, options) {}

Transport::Transport(Channels channels, const WorkerConfig &config, const TransportOptions &options)
    : TransportEngine(config, options, queues_of(channels, config), memory_of(channels),
                      static_cast<std::uint32_t>(channels.size()), false),
      owner_pid_(::getpid()) {
    const Layout first = layout();
    for (std::unique_ptr<Channel> &own : channels) {
        workers_.push_back(std::make_unique<Worker>(std::move(own)));
        workers_.back()->station.number = workers_.size() - 1;
        workers_.back()->ways = first.ways;
        workers_.back()->parts = first.parts;
    }
}

Transport::~Transport() { close(); }

std::int64_t Transport::now_ns() const { return host::now_ns(); }

TransportStats Transport::stats() const {
    TransportStats stats;
    static_cast<EngineStats &>(stats) = TransportEngine::stats();
    tell_channels(&stats);
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

// After the shares' counters were read: of a result that counts there its packet counts here. Who
// compares both takes it else for one that did not come this way (SharedResults in Python).
void Transport::tell_channels(TransportStats *stats) const {
    stats->gso = stats->gro = true;
    for (const auto &worker : workers_) {
        const std::lock_guard lock(worker->told_mutex);
        add_counters(&stats->channel, worker->told.channel);
        stats->gso = stats->gso && worker->told.gso;
        stats->gro = stats->gro && worker->told.gro;
        stats->passed_on += worker->told.passed_on;
    }
}

bool Transport::owes() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const auto &worker) { return worker->channel->owes(); });
}

void Transport::take_own_results() {
    const std::lock_guard closing(close_mutex_);
    if (is_stopping()) return;
    for (const auto &worker : workers_) worker->channel->take_own_results();
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
    stop();
    if (!workers_[0]->thread.joinable()) return;
    for (const auto &worker : workers_) worker->thread.join();
    end_closed();
    close_when_unused();
}

void Transport::close_descriptors() {
    for (const auto &worker : workers_) {
        worker->sleeper.close();
        worker->channel->close();
    }
}

void Transport::close_when_unused() {
    lend(nullptr);
    for (const auto &worker : workers_) {
        const std::lock_guard turn(worker->turn);  // of who submits just now
    }
    close_descriptors();
}

// What its threads do.

void Transport::start() {
    // Signals belong to the interpreter's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        for (const auto &worker : workers_) {
            worker->thread = std::thread([this, &worker = *worker] { run(worker); });
            pthread_setname_np(worker->thread.native_handle(), "ina-worker");  // for top and perf
        }
    } catch (const std::system_error &) {
        stop();
        for (const auto &worker : workers_) {
            if (worker->thread.joinable()) worker->thread.join();
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (workers_.size() == 1) lend(this);
}

void Transport::run(Worker &worker) {
    give_way();
    std::unique_lock turn(worker.turn);
    std::int64_t received_ns = 0;
    bool more_to_read = false;
    adopt_layout(worker);
    while (true) {
        if (worker.touched != 0) attend_others(worker, received_ns);
        if (!attend_own(worker, received_ns)) break;
        if (!more_to_read) sleep(worker, turn);
        if (!has_adopted(worker.station)) adopt_layout(worker);
        received_ns = now_ns();
        more_to_read = receive(worker);
    }
    leave(worker.station);
}

void Transport::sleep(Worker &worker, std::unique_lock<std::mutex> &turn) {
    if (!may_rest(worker)) return;
    std::int64_t wait_ns = -1;
    if (worker.deadline_ns != kNever) {
        wait_ns = std::max<std::int64_t>(worker.deadline_ns - now_ns(), 0);
    }
    const bool pauses = worker.moderation_ns > 0 && wait_ns > 0 && worker.channel->is_woken_often();
    worker.sleeps_until_ns = worker.deadline_ns;
    const std::int64_t moderation_ns = worker.moderation_ns;
    turn.unlock();
    if (pauses) {
        worker.sleeper.pause(std::min(moderation_ns, wait_ns));
    } else {
        worker.sleeper.sleep(wait_ns);
    }
    turn.lock();
    worker.sleeper.rise(now_ns());
}

void Transport::adopt_layout(Worker &worker) {
    Layout layout = this->layout();
    std::string error;
    if (layout.ways != worker.ways || layout.parts != worker.parts) {
        worker.sleeper.watch(-1);  // the channel may have other sockets then
        try {
            worker.channel->redirect(layout.parts, worker.station.number, layout.ways);
            worker.ways = layout.ways;
            worker.parts = layout.parts;
        } catch (const std::runtime_error &refused) {  // std::system_error is one
            error = refused.what();
        }
    }
    adopt(worker.station, std::move(layout), error);
}

// True when more may be waiting.
bool Transport::receive(Worker &worker) {
    const bool has_more = worker.channel->receive(&worker.arrivals);
    const std::uint64_t refused = worker.channel->counters().refused;
    if (refused != worker.refused) {
        note_refused(refused - std::exchange(worker.refused, refused));
    }
    // Only channels that there is one of have any.
    if (worker.channel->counters().spent != 0) note_spent(worker.channel->counters().spent);
    sort_arrivals(worker);
    return has_more;
}

// Says for each arrival which share it is for.
void Transport::sort_arrivals(Worker &worker) const {
    worker.touched = 0;
    const Station &station = worker.station;
    if (station.work.size() == 1) return;
    worker.owners.clear();
    for (const Arrival &arrival : worker.arrivals) {
        const std::size_t share = station.index_of(arrival.data, arrival.bytes);
        worker.owners.push_back(static_cast<std::uint8_t>(share));
        if (station.owns(share)) continue;
        worker.touched |= std::uint64_t{1} << share;
        ++worker.passed_on;
    }
}

// Those shares whose lock is free first.
void Transport::attend_others(Worker &worker, std::int64_t received_ns) {
    tell(worker);
    look(worker.station.number);  // that it ends attend_own() says, too
    for (const bool patient : {false, true}) {
        for (std::size_t i = 0; i < worker.station.work.size(); ++i) {
            const std::uint64_t bit = std::uint64_t{1} << i;
            if ((worker.touched & bit) == 0) continue;
            const Work &work = worker.station.work[i];
            Share &share = *work.share;
            std::unique_lock lock(share.mutex, std::defer_lock);
            if (patient) {
                lock.lock();
            } else if (!lock.try_lock()) {
                continue;
            }
            worker.touched &= ~bit;
            accept(worker, i, received_ns);
            if (!take_inbox(work, std::nullopt)) continue;  // the own share will say so, too
            send(worker, work);
            const std::int64_t deadline_ns = share.core.next_deadline_ns(share.time_ns);
            if (deadline_ns >= share.attended_ns) continue;
            share.attended_ns = deadline_ns;
            wake(share.owner);
        }
    }
}

// False when the thread is to end.
bool Transport::attend_own(Worker &worker, std::int64_t received_ns) {
    worker.deadline_ns = kNever;
    worker.in_flight = 0;
    worker.moderation_ns = worker.arrivals.empty() ? 0 : kNever;
    for (const std::uint32_t i : worker.station.own) {
        if (!attend_share(worker, i, received_ns)) return false;
    }
    if (!worker.station.own.empty()) return true;
    worker.channel->release();
    worker.moderation_ns = 0;
    tell(worker);
    return look(worker.station.number);
}

bool Transport::attend_share(Worker &worker, std::uint32_t index, std::int64_t received_ns) {
    const Work &work = worker.station.work[index];
    Share &share = *work.share;
    const std::lock_guard lock(share.mutex);
    accept(worker, index, received_ns);
    if (index == worker.station.own.back()) worker.channel->release();
    tell(worker);
    if (!take_inbox(work, worker.station.number)) return false;
    send(worker, work);
    share.attended_ns = share.core.next_deadline_ns(share.time_ns);
    worker.deadline_ns = std::min(worker.deadline_ns, share.attended_ns);
    worker.in_flight += share.core.in_flight();
    if (worker.moderation_ns > 0) {
        worker.moderation_ns =
            std::min(worker.moderation_ns, share.pacing.moderation_ns(share.core));
    }
    return true;
}

// With the share's mutex held, as is send().
void Transport::accept(Worker &worker, std::size_t index, std::int64_t received_ns) {
    const Work &work = worker.station.work[index];
    Share &share = *work.share;
    share.time_ns = std::max(share.time_ns, received_ns);
    const bool all = worker.station.work.size() == 1;
    for (std::size_t i = 0; i < worker.arrivals.size(); ++i) {
        if (!all && worker.owners[i] != index) continue;
        const Arrival &arrival = worker.arrivals[i];
        share.core.on_result(arrival.data, arrival.bytes, share.time_ns, arrival.ip_marked,
                             arrival.values);
    }
    accepted(work);
}

void Transport::send(Worker &worker, const Work &work) {
    Share &share = *work.share;
    transmit(worker.station, work, worker.batch.data(), worker.batch.size(),
             [&](std::size_t count) {
                 worker.channel->send(worker.batch.data(), count,
                                      share.pacing.longest_train(share.core), share.way);
             });
}

void Transport::tell(Worker &worker) {
    const Channel &channel = *worker.channel;
    const std::lock_guard lock(worker.told_mutex);
    worker.told = {channel.counters(), channel.uses_gso(), channel.uses_gro(), worker.passed_on};
}

// Nothing is to do before packets come, or its deadline: it counts as asleep.
bool Transport::may_rest(Worker &worker) {
    if (!may_sleep(worker.station)) return false;
    if (!worker.channel->prepare_sleep(worker.in_flight)) return false;  // look() says it is awake
    worker.sleeper.watch(worker.channel->fd());
    return true;
}

// What other threads do in their place.

void Transport::work_once(std::size_t thread) {
    Worker &worker = *workers_[thread];
    const std::unique_lock turn(worker.turn, std::try_to_lock);
    if (!turn || ::getpid() != owner_pid_ || !has_adopted(worker.station)) return wake(thread);
    worker.arrivals.clear();
    worker.touched = 0;
    if (attend_own(worker, now_ns())) leave_turn(worker);  // else the thread knows of the end
}

void Transport::work_for(const Operation &operation, std::int64_t until_ns) {
    Worker &worker = *workers_[0];
    const std::unique_lock turn(worker.turn, std::try_to_lock);
    if (!turn || ::getpid() != owner_pid_ || !is_asleep(0)) return;
    worker.sleeper.leave_packets(true);
    worker.sleeper.wake_at(Sleeper::kNoTime);
    const bool goes_on = work_in_place(worker, operation, until_ns);
    worker.sleeper.leave_packets(false);
    if (goes_on) leave_turn(worker);
}

// False when the work is to end.
bool Transport::work_in_place(Worker &worker, const Operation &operation, std::int64_t until_ns) {
    bool more_to_read = false;
    while (operation.state() == OperationState::kPending && worker.in_flight <= kFewInFlight) {
        if (!more_to_read && may_rest(worker)) {
            const std::int64_t wait_ns = std::min(worker.deadline_ns, until_ns) - now_ns();
            if (!worker.sleeper.stand_in(worker.channel->fd(), wait_ns)) return true;
        }
        const std::int64_t time_ns = now_ns();
        if (!has_adopted(worker.station) || time_ns >= until_ns) return true;
        more_to_read = receive(worker);
        if (!attend_own(worker, time_ns)) return false;
    }
    return true;
}

// The thread sleeps on, unless there is more to do at once. Its deadline may be earlier than it was
// when it fell asleep.
void Transport::leave_turn(Worker &worker) {
    if (!may_rest(worker)) return worker.sleeper.wake();
    if (worker.deadline_ns < worker.sleeps_until_ns) worker.sleeper.wake_at(worker.deadline_ns);
}

}  // namespace ina::host
