// What a transport's threads do.
//
// No wake-up is lost. A thread tells when it will look at its share again (Share::attended_ns) in
// the same hold of the share's lock in which it has done all that was due; whoever then makes
// something due earlier wakes it. It says that it is asleep (Worker::asleep) in the same hold of
// mutex_ in which it has found its inboxes empty. And a wake counts even if it comes before the
// sleep.
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "common/clock.hpp"
#include "common/short_slices.hpp"
#include "host/transport/transport.hpp"

namespace ina::host {
namespace {

// A batch thread (sched(7)) does not preempt whoever wakes it. On a machine whose cores are all
// busy the switch then finishes its batch instead of losing its core to each worker that it wakes,
// and this thread finds more packets when it runs. Best effort; where a core is free it changes
// nothing.
void give_way() { take_short_slices(SCHED_BATCH); }

}  // namespace

void Transport::start() {
    running_ = static_cast<std::uint32_t>(workers_.size());
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
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            wake_all();
        }
        for (const auto &worker : workers_) {
            if (worker->thread.joinable()) worker->thread.join();
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Transport::run(Worker &worker) {
    give_way();
    std::int64_t received_ns = 0;
    bool more_to_read = false;
    adopt(worker);
    while (true) {
        if (worker.touched != 0) attend_others(worker, received_ns);
        if (!attend_own(worker, received_ns)) break;
        if (!more_to_read) sleep(worker);
        if (version_ != worker.version) adopt(worker);
        received_ns = now_ns();
        more_to_read = worker.channel->receive(&worker.arrivals);
        const std::uint64_t refused = worker.channel->counters().refused;
        if (refused != worker.refused) refused_ += refused - std::exchange(worker.refused, refused);
        sort_arrivals(worker);
    }
    leave(worker);
}

// Takes over what there is to work on now. Nothing that was received is still to be accepted.
void Transport::adopt(Worker &worker) {
    Layout layout;
    {
        const std::lock_guard lock(mutex_);
        layout = layout_;
    }
    std::string error;
    if (layout.ways != worker.ways || layout.parts != worker.parts) {
        try {
            worker.channel->redirect(layout.parts, worker.number, layout.ways);
            worker.ways = layout.ways;
            worker.parts = layout.parts;
        } catch (const std::runtime_error &refused) {  // std::system_error is one
            error = refused.what();
        }
    }
    worker.version = layout.version;
    worker.mappings = std::move(layout.mappings);
    worker.work.clear();
    worker.own.clear();
    for (const auto &mapping : worker.mappings) {
        std::uint32_t bit = mapping->first_bit;
        for (const auto &share : mapping->shares) {
            if (share->owner == worker.number) {
                worker.own.push_back(static_cast<std::uint32_t>(worker.work.size()));
            }
            worker.work.push_back({mapping.get(), share.get(), bit++});
        }
    }
    const std::lock_guard lock(mutex_);
    worker.adopted = worker.version;
    if (!error.empty()) redirect_error_ = error;
    adopted_.notify_all();
}

// Says for each arrival which share it is for. What is no packet of this format goes to a share of
// the thread's own, to be counted; and what is of no mapping, to one of the older.
void Transport::sort_arrivals(Worker &worker) const {
    worker.touched = 0;
    if (worker.work.size() == 1) return;
    worker.owners.clear();
    const Mapping &older = *worker.mappings.front();
    const Mapping &newer = *worker.mappings.back();
    for (const Arrival &arrival : worker.arrivals) {
        std::size_t share = worker.own.empty() ? 0 : worker.own.front();
        if (arrival.bytes >= wire::kHeaderBytes) {
            const std::uint32_t seq = wire::load_be32(arrival.data + wire::kSeqOffset);
            const std::uint16_t epoch = wire::load_be16(arrival.data + wire::kEpochOffset);
            const bool is_newer =
                &newer != &older && epoch == static_cast<std::uint16_t>(newer.epoch);
            const Mapping &mapping = is_newer ? newer : older;
            share = mapping.finder.of(seq & (mapping.window - 1));
            if (is_newer) share += older.shares.size();
        }
        worker.owners.push_back(static_cast<std::uint8_t>(share));
        if (worker.owns(share)) continue;
        worker.touched |= std::uint64_t{1} << share;
        ++worker.passed_on;
    }
}

// Those shares whose lock is free first.
void Transport::attend_others(Worker &worker, std::int64_t received_ns) {
    tell(worker);  // that it ends attend_own() says, too
    for (const bool patient : {false, true}) {
        for (std::size_t i = 0; i < worker.work.size(); ++i) {
            const std::uint64_t bit = std::uint64_t{1} << i;
            if ((worker.touched & bit) == 0) continue;
            const Work &work = worker.work[i];
            Share &share = *work.share;
            std::unique_lock lock(share.mutex, std::defer_lock);
            if (patient) {
                lock.lock();
            } else if (!lock.try_lock()) {
                continue;
            }
            worker.touched &= ~bit;
            accept(worker, i, received_ns);
            if (!take_inbox(work, nullptr)) continue;  // the own share will say so, too
            transmit(worker, work);
            const std::int64_t deadline_ns = share.core.next_deadline_ns(share.time_ns);
            if (deadline_ns >= share.attended_ns) continue;
            share.attended_ns = deadline_ns;
            workers_[share.owner]->sleeper.wake();
        }
    }
}

// False when the thread is to end.
bool Transport::attend_own(Worker &worker, std::int64_t received_ns) {
    worker.deadline_ns = kNever;
    worker.in_flight = 0;
    worker.moderation_ns = worker.arrivals.empty() ? 0 : kNever;
    for (const std::uint32_t i : worker.own) {
        if (!attend_share(worker, i, received_ns)) return false;
    }
    if (!worker.own.empty()) return true;
    worker.channel->release();
    worker.moderation_ns = 0;
    return tell(worker);
}

bool Transport::attend_share(Worker &worker, std::uint32_t index, std::int64_t received_ns) {
    const Work &work = worker.work[index];
    Share &share = *work.share;
    const std::lock_guard lock(share.mutex);
    accept(worker, index, received_ns);
    if (index == worker.own.back()) worker.channel->release();
    if (!take_inbox(work, &worker)) return false;
    transmit(worker, work);
    share.attended_ns = share.core.next_deadline_ns(share.time_ns);
    worker.deadline_ns = std::min(worker.deadline_ns, share.attended_ns);
    worker.in_flight += share.core.in_flight();
    if (worker.moderation_ns > 0) {
        worker.moderation_ns =
            std::min(worker.moderation_ns, share.pacing.moderation_ns(share.core));
    }
    return true;
}

// With the share's mutex held, as are take_inbox() and transmit().
void Transport::accept(Worker &worker, std::size_t index, std::int64_t received_ns) {
    const Work &work = worker.work[index];
    Share &share = *work.share;
    share.time_ns = std::max(share.time_ns, received_ns);
    const bool all = worker.work.size() == 1;
    for (std::size_t i = 0; i < worker.arrivals.size(); ++i) {
        if (!all && worker.owners[i] != index) continue;
        const Arrival &arrival = worker.arrivals[i];
        share.core.on_result(arrival.data, arrival.bytes, share.time_ns, arrival.ip_marked,
                             arrival.values);
    }
    const std::uint64_t results = share.core.results();
    if (results == std::exchange(share.results, results)) return;
    share.last_result_ns = share.time_ns;
    work.mapping->progress_ns = share.time_ns;
    refused_ = 0;
    const std::uint64_t agreed = share.core.agreed();
    std::uint64_t before = agreed_;
    while (before < agreed && !agreed_.compare_exchange_weak(before, agreed)) {
    }
    operations_.share_done(work.bit, share.core.take_completions());
}

// False when the thread is to end.
bool Transport::tell(Worker &worker) {
    const std::lock_guard lock(mutex_);
    return note(worker);
}

bool Transport::note(Worker &worker) {
    const Channel &channel = *worker.channel;
    worker.asleep = false;
    worker.told = {channel.counters(), channel.uses_gso(), channel.uses_gro(), worker.passed_on};
    return !is_ending();
}

// False when the transport's threads are to end; the inbox then stays as it is. `owner`: null if it
// is another thread that takes it.
bool Transport::take_inbox(const Work &work, Worker *owner) {
    Share &share = *work.share;
    std::vector<Submission> taken;
    {
        const std::lock_guard lock(mutex_);
        if (owner != nullptr ? !note(*owner) : is_ending()) return false;
        if (work.mapping->is_open) taken.swap(share.inbox);
    }
    if (taken.empty()) return true;
    share.time_ns = std::max(share.time_ns, now_ns());
    for (const Submission &placed : taken) share.core.submit(placed, share.time_ns);
    operations_.share_done(work.bit, share.core.take_completions());  // without a part in them
    return true;
}

void Transport::transmit(Worker &worker, const Work &work) {
    Share &share = *work.share;
    if (worker.work.size() > 1) {
        // The newer of two mappings may have to wait for the older one, but not the other way
        // round.
        share.core.note_progress(worker.mappings.front()->progress_ns);
        share.core.note_progress(work.mapping->progress_ns);
    }
    std::size_t count = 0;
    do {
        share.time_ns = std::max(share.time_ns, now_ns());
        count = share.core.poll_transmit(share.time_ns, worker.batch.data(), worker.batch.size());
        worker.channel->send(worker.batch.data(), count, share.pacing.longest_train(share.core),
                             share.way);
    } while (count == worker.batch.size());
    if (share.core.has_stopped()) note_failure(share.core);
}

void Transport::note_failure(const WorkerCore &core) {
    const std::lock_guard lock(mutex_);
    if (is_ending()) return;
    failure_ = core.stall();
    mismatch_ = core.mismatch();
    corruption_ = core.corruption();
    (halts_ && (corruption_ || mismatch_) ? halted_ : failed_) = true;
    stopped_.notify_all();
    wake_all();
}

void Transport::sleep(Worker &worker) {
    {
        const std::lock_guard lock(mutex_);
        if (is_ending() || layout_.version != worker.version) return;
        for (const std::uint32_t i : worker.own) {
            const Work &work = worker.work[i];
            if (work.mapping->is_open && !work.share->inbox.empty()) return;
        }
        worker.asleep = true;
    }
    if (!worker.channel->prepare_sleep(worker.in_flight)) return;  // take_inbox() clears `asleep`
    std::int64_t wait_ns = -1;
    if (worker.deadline_ns != kNever) {
        wait_ns = std::max<std::int64_t>(worker.deadline_ns - now_ns(), 0);
    }
    if (worker.moderation_ns > 0 && wait_ns > 0 && worker.channel->is_woken_often()) {
        return worker.sleeper.pause(std::min(worker.moderation_ns, wait_ns));
    }
    worker.sleeper.sleep(worker.channel->fd(), wait_ns);
}

// A thread's last act; the last thread's is to end what is pending, or, frozen, to leave it with
// all that was submitted in the cores. Halted it stays in the inbox, too, where more may come.
void Transport::leave(Worker &worker) {
    for (const std::uint32_t i : worker.own) {
        Share &share = *worker.work[i].share;
        const std::lock_guard owned(share.mutex);
        const std::lock_guard lock(mutex_);
        if (frozen_) {
            for (const Submission &placed : share.inbox) share.core.submit(placed, now_ns());
        }
        if (frozen_ || !halted_) share.inbox.clear();
    }
    const std::lock_guard lock(mutex_);
    if (--running_ > 0) return;
    if (failed_ || stopping_) {
        operations_.end_all(failed_ ? OperationState::kFailed : OperationState::kClosed);
    }
    stopped_.notify_all();
    adopted_.notify_all();
}

}  // namespace ina::host
