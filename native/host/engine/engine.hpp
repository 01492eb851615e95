// A worker's operations over the lanes of one mapping, or of two while its job changes to another
// (docs/resize.md); how it fails, halts and is frozen. It knows neither threads nor sockets, nor
// what time it is: who drives it (host/transport by threads, sim/worker.hpp by the events of the
// virtual network) gives packets to its cores, sends what they have to send, and tells the time.
//
// It is worked on at stations (station.hpp). Each has one share of the lanes, or several where they
// are dealt among several trees (division.hpp); and as many more while the job changes to another
// mapping (mapping.hpp), which it works by beside the older one. Whoever receives a packet hands it
// to its share.
//
// A change of mapping: what makes it right is that one worker of the job has sent nothing of the
// first operation of the new mapping, or of any later one, by the old mapping, and sends nothing:
// so no worker ever gets a result of theirs there. They are taken out of the old mapping's cores,
// sent or not, before any core of the new one has them: an operation's memory is the caller's again
// once it is done.
//
// Locks are taken in this order, and never two of a kind: remap_mutex_, a share's, mutex_, the
// operations' own.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/core/submission.hpp"
#include "host/engine/course.hpp"
#include "host/engine/operation.hpp"
#include "host/engine/station.hpp"
#include "host/engine/stats.hpp"

namespace ina::host {

struct TransportOptions {
    std::uint32_t max_in_flight = 0;  // 0: no limit but W and the queues' room
    // At most so many, a power of two; fewer where the packets in flight are fewer, and one where
    // the channel is for one.
    std::uint32_t threads = 1;
    // Whether results that are no sums halt the engine: operations stay pending until the owner
    // says freeze() or fail(). Else they fail at once.
    bool halts = false;
    congestion::Choice congestion;
};

class TransportEngine {
  public:
    virtual ~TransportEngine() = default;
    TransportEngine(const TransportEngine &) = delete;
    TransportEngine &operator=(const TransportEngine &) = delete;

    // The request's id is set here. After a failure or close the operation has ended at once;
    // throws std::logic_error after freeze().
    std::shared_ptr<Operation> submit(TensorRequest request);
    // The group has had so many tensors summed elsewhere before the first that is submitted here:
    // random bits go by a tensor's number among all. Before the first, the same on all workers.
    void count_on_from(std::uint64_t tensors) {
        const std::lock_guard lock(mutex_);
        course_.count_on_from(tensors);
    }
    EngineStats stats() const;
    // As of now. Of the older of two mappings, as long as an operation waits there.
    LaneSnapshot lanes() const;
    // From now on other windows say, and no more than so many packets are in flight, of all shares
    // and all mappings that there are; of those that follow, too, as for the packets. choice:
    // empty: the windows stay. most_packets: each share may have one, whatever it is; 0: no limit
    // but the windows. Takes effect with what is sent next; what is in flight stays. Throws
    // std::invalid_argument: no such algorithm or option; nothing has changed then. No effect once
    // closed.
    void set_congestion(const std::optional<congestion::Choice> &choice,
                        std::uint32_t most_packets);
    // Ends pending and future operations as failed, and all work. Idempotent; no effect after a
    // failure or close.
    void fail();
    // The stall that made operations fail; empty while none has, and after fail().
    std::optional<StallReport> failure() const;
    // The result that made operations fail because workers have submitted different things; empty
    // while none has.
    std::optional<Mismatch> mismatch() const {
        const std::lock_guard lock(mutex_);
        return mismatch_;
    }
    // The results that made operations fail, or halted the engine, because they were no sums of
    // what the workers had sent; empty while there are none.
    std::optional<Corruption> corruption() const {
        const std::lock_guard lock(mutex_);
        return corruption_;
    }
    // Blocks until the engine halts (true), or fails, is frozen or closes (false), or the time is
    // over (empty).
    std::optional<bool> wait_halted(std::int64_t timeout_ns) const;
    // Of the operations with a result so far, the last: all workers have submitted the same up to
    // it. 0: none.
    std::uint64_t agreed() const { return agreed_; }
    // The submissions among which the difference is; see Submissions.
    std::vector<TensorRequest> submissions() const;

    // Stops sending and accepting, for good, and leaves pending operations pending; the functions
    // below then say what has been done and let the caller finish them. False when the engine has
    // failed or is closed. Needs WorkerConfig::keep_results.
    bool freeze();
    // Epoch and W of each mapping that it works by, the older one first.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> mappings() const;
    // All of these throw std::logic_error unless frozen; see WorkerCore for the first four. Of a
    // lane of the mapping with this epoch; std::invalid_argument: there is no such mapping.
    LaneResult lane_result(std::uint32_t epoch, std::uint32_t lane) const;
    std::vector<PendingTensor> pending() const;
    std::vector<std::uint8_t> own_part(std::uint32_t epoch, std::uint32_t lane,
                                       std::uint32_t seq) const;
    void put_result(std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq, const void *data,
                    std::size_t bytes, bool non_finite);
    // Ends a pending operation as done or failed. Throws std::invalid_argument when it is not
    // pending.
    void end_operation(std::uint64_t id, bool done);

    // A change to another mapping, step by step. Operations before the first one of the new mapping
    // end by the older one, the others go by the new one, also those that were sent already. All of
    // these throw std::logic_error out of turn, and once the engine has failed, was frozen or
    // closed.

    // Makes ready for it: `config` has another epoch, and maybe another W and other trees; the rest
    // is as before. Throws std::invalid_argument, std::runtime_error: it leads to a node that the
    // driver cannot lead to, or there is no memory for its packets; nothing has changed then.
    void begin_remap(const WorkerConfig &config, std::uint32_t max_in_flight,
                     const congestion::Choice &congestion);
    // For the worker that decides: the first operation of the new mapping, of which, as of all
    // later ones, nothing has been sent; nor will it be before cut_over() or cancel_remap(). As
    // many more are left to the older mapping as were submitted in the last `news_ns`: the others
    // are to hear of it before they come to it. Of a job that has been idle for so long none are.
    std::uint64_t reserve(std::int64_t news_ns);
    // The operations from `first` on go by the new mapping; once `may_send`, for which it may be
    // called again. Throws std::invalid_argument: one of them has results by the older mapping.
    void cut_over(std::uint64_t first, bool may_send);
    // Blocks until this worker has all results of operations before that one (true), or the engine
    // closes or the time is over (false).
    bool wait_cut(std::int64_t timeout_ns);
    // All workers have these: lets go of the older mapping.
    void end_remap();
    // Before cut_over(): there will be no change after all.
    void cancel_remap();

    // Whether other workers may lack results that this one alone will send them, as long as it
    // works. Where it is, it should not be stopped.
    virtual bool owes() const { return false; }

    // Blocks until watched operations have ended, the engine closes, or the time is over.
    std::vector<std::uint64_t> wait_watched(std::int64_t timeout_ns) {
        return operations_.wait_watched(timeout_ns);
    }

  protected:
    // queues: of each thread that lanes are divided among. memory: for packets, or nothing.
    // stations: so many adopt what there is to work on, and leave. is_watched: all operations are.
    // Throws std::invalid_argument.
    TransportEngine(const WorkerConfig &config, const TransportOptions &options,
                    std::vector<ResultQueue> queues, const PacketMemory &memory,
                    std::uint32_t stations, bool is_watched);

    // What a driver is asked. The time, of any monotonic clock.
    virtual std::int64_t now_ns() const = 0;
    // This thread sleeps, or is about to, and has something to look at. With the engine's lock
    // held.
    virtual void wake(std::size_t thread) = 0;
    // This thread was asleep, counts as awake, and has few packets to send: a driver may have who
    // submitted them send them, or wake it. Without locks.
    virtual void work_once(std::size_t thread);
    // Something has changed: each station is to look, and to adopt what there is to work on if that
    // is new, or to leave if the work is to end. Without locks. Whoever has threads need do
    // nothing: they have been woken.
    virtual void attend() {}

    // What a station does. It has a share's mutex for what takes a Work.

    Layout layout() const {
        const std::lock_guard lock(mutex_);
        return course_.layout;
    }
    bool has_adopted(const Station &station) const { return version_ == station.layout.version; }
    // It works by this from now on. error: why its channel does not lead there; empty: it does.
    // Nothing that was received is still to be accepted.
    void adopt(Station &station, Layout layout, const std::string &error);
    // After results were given to the share's core.
    void accepted(const Work &work);
    // Gives the core what was submitted, and returns it; empty: the work is to end, and the inbox
    // stays as it is. thread: that is not asleep, if it is its own share.
    std::optional<std::vector<Submission>> take_inbox(const Work &work,
                                                      std::optional<std::size_t> thread);
    // Fills `batch` time and again, and calls send(count) for it.
    template <typename Send>
    void transmit(const Station &station, const Work &work, PacketView *batch, std::size_t capacity,
                  const Send &send) {
        note_progress(station, work);
        Share &share = *work.share;
        std::size_t count = 0;
        do {
            share.time_ns = std::max(share.time_ns, now_ns());
            count = share.core.poll_transmit(share.time_ns, batch, capacity);
            send(count);
        } while (count == capacity);
        if (share.core.has_stopped()) note_failure(share.core);
    }
    // The thread is not asleep. False when the work is to end.
    bool look(std::size_t thread);
    // Whether there is nothing to look at: then it counts as asleep.
    bool may_sleep(const Station &station);
    // So many times more it was plain that no switch is there.
    void note_refused(std::uint64_t times) {
        refused_ += times;
        refused_since_result_ += times;
    }
    void note_spent(std::uint64_t connections) { spent_ = connections; }
    // A station's last act; the last one's is to end what is pending, or, frozen, to leave it with
    // all that was submitted in the cores. Halted it stays in the inbox, too, where more may come.
    void leave(const Station &station);
    bool is_ending() const {
        const std::lock_guard lock(mutex_);
        return has_ended();
    }

    // Closing: no work goes on, what is pending ends once all stations have left, or by
    // end_closed() where none works any more.
    void stop();
    void end_closed();
    bool is_stopping() const {
        const std::lock_guard lock(mutex_);
        return stopping_;
    }
    // See Operations. Not in a forked child.
    void lend(Hands *hands) { operations_.lend(hands); }
    bool is_asleep(std::size_t thread) const {
        const std::lock_guard lock(mutex_);
        return asleep_[thread] != 0;
    }
    std::vector<std::uint64_t> take_watched() { return operations_.take_watched(); }

  private:
    Mappings mappings_now() const { return layout().mappings; }
    Mapping &mapping_of(std::uint32_t epoch) const;
    void check_frozen() const;
    void wake_all();
    void note_progress(const Station &station, const Work &work) const;
    void note_failure(const WorkerCore &core);
    // With mutex_ held.
    bool has_ended() const { return failed_ || halted_ || frozen_ || stopping_; }

    // For a change of mapping. With remap_mutex_ held.
    void check_works() const;
    void check_remap(bool has_second, bool is_cut) const;
    void publish(const Layout &layout, std::shared_ptr<Mapping> retiring = nullptr);
    void await_adoption();
    void take_back(std::uint64_t first, const Mapping &mapping);

    const std::vector<ResultQueue> queues_;  // by thread
    const PacketMemory memory_;
    Operations operations_;
    std::atomic<std::uint64_t> refused_{0};  // times that no switch was there
    std::atomic<std::uint64_t> refused_since_result_{0};
    std::atomic<std::uint64_t> spent_{0};    // reliable connections
    std::atomic<std::uint64_t> agreed_{0};   // the most that WorkerCore::agreed of any share is
    std::atomic<std::uint64_t> version_{0};  // the layout's

    std::mutex remap_mutex_;          // one step of a change at a time, and no freeze() meanwhile
    std::uint32_t most_packets_ = 0;  // of set_congestion(); guarded by remap_mutex_
    mutable std::mutex mutex_;        // guards what follows, and the shares' inboxes
    mutable std::condition_variable stopped_;  // halted, failed or closing; or no station works
    std::condition_variable adopted_;
    Course course_;  // its layout changes with remap_mutex_ held, too
    std::shared_ptr<Mapping> retiring_;
    WorkerCounters retired_;            // of mappings that are gone
    std::string redirect_error_;        // of a channel
    std::uint32_t left_to_adopt_ = 0;   // stations that do not work by the layout yet
    std::vector<std::uint8_t> asleep_;  // by thread: to be woken
    std::optional<StallReport> failure_;
    std::optional<Mismatch> mismatch_;
    std::optional<Corruption> corruption_;
    bool failed_ = false;  // by a stall, a mismatch, a corruption, or by fail()
    const bool halts_;
    bool halted_ = false;  // the work ends, and the owner has not said what then
    bool frozen_ = false;
    bool stopping_ = false;  // closing
    const std::uint32_t stations_;
    std::uint32_t working_;  // stations; when there are none, the cores are their heirs'
};

}  // namespace ina::host
