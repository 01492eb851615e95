// Drives a worker's lanes over one way to the switch: operations, completions, recovery. A thread
// sleeps whenever there is nothing to send or read: several workers may share a processor.
//
// Each thread owns one share of the lanes, or several where they are dealt among several trees
// (division.hpp); and as many more while the job changes to another mapping (mapping.hpp), which it
// works by beside the older one. What comes from a switch comes to the thread that owns the share
// it is for, or to any of them where the channel cannot tell, and now and then to another one:
// whoever receives it hands it to its share.
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
#include <thread>
#include <utility>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/core/submission.hpp"
#include "host/engine/mapping.hpp"
#include "host/engine/operation.hpp"
#include "host/engine/share.hpp"
#include "host/transport/sleeper.hpp"
#include "host/engine/submissions.hpp"

namespace ina::host {

struct TransportStats {
    WorkerCounters worker;
    ChannelCounters channel;
    RhythmCounters rhythm;
    std::int64_t srtt_ns = 0;  // the largest of all shares, as is the next
    std::int64_t rto_ns = 0;
    std::uint32_t window = 0;      // W, packets; of the newest mapping in use
    std::int64_t shortest_ns = 0;  // round trip of late, the shortest of all shares; 0: none so far
    std::int64_t mean_ns = 0;      // the largest of all shares' moving averages
    std::uint32_t in_flight_limit = 0;  // now: W, what the channel holds, or what the path holds
    std::uint32_t in_flight = 0;
    int receive_buffer_bytes = 0;  // of all queues
    // Times that it was plain that no switch is there, since the last accepted result.
    std::uint64_t refused_since_result = 0;
    bool gso = false;
    bool gro = false;
    const char *kind = "";  // the channel's
    std::uint32_t threads = 1;
    std::uint32_t queues = 1;     // for what comes: one for each thread, or one for all
    std::string one_queue_why;    // if there are several threads
    std::uint64_t passed_on = 0;  // packets that came to another thread than their share's
};

struct TransportOptions {
    std::uint32_t max_in_flight = 0;  // 0: no limit but W and the channel's room
    // At most so many, a power of two; fewer where the packets in flight are fewer, and one where
    // the channel is for one.
    std::uint32_t threads = 1;
    // Whether results that are no sums halt the transport: operations stay pending until the owner
    // says freeze() or fail(). Else they fail at once.
    bool halts = false;
    congestion::Choice congestion;
};

class Transport {
  public:
    static constexpr std::uint32_t kMaxThreads = 8;

    // Throws std::system_error, std::invalid_argument.
    Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
              const TransportOptions &options);
    ~Transport();
    Transport(const Transport &) = delete;
    Transport &operator=(const Transport &) = delete;

    // The request's id is set here. After a failure or close the operation has ended at once;
    // throws std::logic_error after freeze().
    std::shared_ptr<Operation> submit(TensorRequest request);
    TransportStats stats() const;
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
    // From now on takes no results that are for several workers. No effect once closed.
    void take_own_results();
    // Ends pending and future operations as failed and stops the threads. Idempotent; no effect
    // after a failure or close.
    void fail();
    // The stall that made operations fail; empty while none has, and after fail().
    std::optional<StallReport> failure() const;

    // The result that made operations fail because workers have submitted different things; empty
    // while none has.
    std::optional<Mismatch> mismatch() const;
    // The results that made operations fail, or halted the transport, because they were no sums of
    // what the workers had sent; empty while there are none.
    std::optional<Corruption> corruption() const;
    // Blocks until the transport halts (true), or fails, is frozen or closes (false), or the time
    // is over (empty).
    std::optional<bool> wait_halted(std::int64_t timeout_ns) const;
    // The submissions among which the difference is; see Submissions.
    std::vector<TensorRequest> submissions() const;

    // Stops sending and accepting, for good, and leaves pending operations pending; the functions
    // below then say what has been done and let the caller finish them. False when the transport
    // has failed or is closed. Needs WorkerConfig::keep_results.
    bool freeze();
    // Epoch and W of each mapping that it works by, the older one first.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> mappings() const;
    // All of these throw std::logic_error unless frozen; see WorkerCore for the first three. Of a
    // lane of the mapping with this epoch; std::invalid_argument: there is no such mapping.
    LaneResult lane_result(std::uint32_t epoch, std::uint32_t lane) const;
    std::vector<PendingTensor> pending() const;
    void put_result(std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq, const void *data,
                    std::size_t bytes);
    // Ends a pending operation as done or failed. Throws std::invalid_argument when it is not
    // pending.
    void end_operation(std::uint64_t id, bool done);

    // A change to another mapping, step by step (transport_remap.cpp). Operations before the first
    // one of the new mapping end by the older one, the others go by the new one, also those that
    // were sent already. All of these throw std::logic_error out of turn, and once the transport
    // has failed, was frozen or closed.

    // Makes ready for it: `config` has another epoch, and maybe another W and other trees; the rest
    // is as before. Throws std::invalid_argument, std::runtime_error: it leads to a node that this
    // channel cannot lead to, or there is no memory for its packets; nothing has changed then.
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
    // Blocks until this worker has all results of operations before that one (true), or the
    // transport closes or the time is over (false).
    bool wait_cut(std::int64_t timeout_ns);
    // All workers have these: lets go of the older mapping.
    void end_remap();
    // Before cut_over(): there will be no change after all.
    void cancel_remap();

    // Blocks until watched operations have ended, the transport closes, or the time is over.
    std::vector<std::uint64_t> wait_watched(std::int64_t timeout_ns);
    // Ends what is pending as closed and joins the threads. Idempotent. In a forked child, where
    // the threads do not exist, only marks the transport as closed.
    void close();

  private:
    using Mappings = std::vector<std::shared_ptr<Mapping>>;

    // A share, as those see it who work on it.
    struct Work {
        Mapping *mapping;
        Share *share;
        std::uint32_t bit;  // its number among an operation's bits
    };

    struct Worker {  // one thread, and what it alone uses
        explicit Worker(std::unique_ptr<Channel> own)
            : channel(std::move(own)),
              sleeper(channel->one_queue_why().empty() ? -1 : channel->fd()),
              batch(channel->burst_packets()) {}

        bool owns(std::size_t i) const {
            return std::binary_search(own.begin(), own.end(), static_cast<std::uint32_t>(i));
        }

        const std::unique_ptr<Channel> channel;
        Sleeper sleeper;
        std::size_t number = 0;
        std::uint64_t version = 0;       // of the layout, as are the next three
        Mappings mappings;               // kept alive
        std::vector<Work> work;          // all shares, the older mapping's first
        std::vector<std::uint32_t> own;  // in `work`, those it owns
        std::vector<Way> ways;           // that its channel leads to
        LaneParts parts{};               // by which it gets packets

        std::vector<PacketView> batch;
        std::vector<Arrival> arrivals;
        std::vector<std::uint8_t> owners;   // in `work`, the share that each arrival is for
        std::uint64_t touched = 0;          // shares with arrivals, as bits; in `work`
        std::uint64_t passed_on = 0;        // arrivals for other threads' shares
        std::uint64_t refused = 0;          // of the channel's count, what refused_ has
        std::int64_t deadline_ns = kNever;  // of its shares, the earliest
        std::int64_t moderation_ns = 0;     // of its shares, the least, if something has come
        std::uint32_t in_flight = 0;        // of its shares
        std::thread thread;

        // Guarded by the transport's own mutex.
        struct Told {  // as of its last round
            ChannelCounters channel;
            bool gso = true;
            bool gro = true;
            std::uint64_t passed_on = 0;
        } told;
        std::uint64_t adopted = 0;  // the layout that it works by
        bool asleep = false;        // to be woken
    };

    // What threads work on; changes whole.
    struct Layout {
        std::uint64_t version = 0;
        Mappings mappings;  // one, or the older and the newer
        std::vector<Way> ways;
        LaneParts parts{};
    };

    std::vector<Channel *> channels() const;
    Mappings mappings_now() const;
    Mapping &mapping_of(std::uint32_t epoch) const;
    void place(Mapping &mapping, const TensorRequest &request);
    void check_frozen() const;
    void wake_all() const;
    void close_descriptors();

    // For a change of mapping. With remap_mutex_ held, but for the last.
    void check_remap(bool has_second, bool is_cut) const;
    void publish(const Layout &layout);
    void await_adoption();
    void place_from(std::uint64_t first, Mapping &mapping);
    Mapping &current() const { return is_cut_ ? *layout_.mappings.back() : *layout_.mappings[0]; }

    // In the threads (transport_threads.cpp).
    void start();
    void run(Worker &worker);
    void adopt(Worker &worker);
    void sort_arrivals(Worker &worker) const;
    void attend_others(Worker &worker, std::int64_t received_ns);
    bool attend_own(Worker &worker, std::int64_t received_ns);
    bool attend_share(Worker &worker, std::uint32_t index, std::int64_t received_ns);
    void accept(Worker &worker, std::size_t index, std::int64_t received_ns);
    bool tell(Worker &worker);
    void tell_channels(TransportStats *stats) const;
    bool take_inbox(const Work &work, Worker *owner);
    void transmit(Worker &worker, const Work &work);
    void note_failure(const WorkerCore &core);
    void sleep(Worker &worker);
    void leave(Worker &worker);
    // With mutex_ held.
    bool is_ending() const { return failed_ || halted_ || frozen_ || stopping_; }
    bool note(Worker &worker);

    const int owner_pid_;
    std::vector<std::unique_ptr<Worker>> workers_;
    Operations operations_;
    std::atomic<std::uint64_t> refused_{0};  // refusals since a result was accepted last
    std::atomic<std::uint64_t> agreed_{0};   // the most that WorkerCore::agreed of any share is
    std::atomic<std::uint64_t> version_{0};  // layout_.version

    std::mutex remap_mutex_;          // one step of a change at a time, and no freeze() meanwhile
    std::uint32_t most_packets_ = 0;  // of set_congestion(); guarded by remap_mutex_
    std::mutex close_mutex_;
    mutable std::mutex mutex_;                 // guards what follows, and the shares' inboxes
    mutable std::condition_variable stopped_;  // halted, failed or closing; or no thread runs
    std::condition_variable adopted_;
    Layout layout_;  // changed with remap_mutex_ held, too
    std::shared_ptr<Mapping> retiring_;
    WorkerCounters retired_;          // of mappings that are gone
    std::uint64_t first_of_new_ = 0;  // the operation; 0: not known, or there is no second mapping
    bool is_cut_ = false;             // its operations from there on are the newer mapping's
    std::string redirect_error_;      // of a channel
    RecentTimes submit_times_;
    std::optional<StallReport> failure_;
    std::optional<Mismatch> mismatch_;
    std::optional<Corruption> corruption_;
    Submissions submissions_;
    std::uint64_t next_id_ = 1;
    std::uint64_t submitted_ = 0;
    bool failed_ = false;  // by a stall, a mismatch, a corruption, or by fail()
    const bool halts_;
    bool halted_ = false;  // its threads end, and the owner has not said what then
    bool frozen_ = false;
    bool stopping_ = false;  // closing
    std::uint32_t running_;  // threads; when there are none, the cores are their heirs'
};

}  // namespace ina::host
