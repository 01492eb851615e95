// Drives a worker's lanes over one way to the switch: operations, completions, recovery. A thread
// sleeps whenever there is nothing to send or read: several workers may share a processor.
//
// Each thread owns one share of the lanes, or several where they are dealt among several trees
// (division.hpp). What comes from a switch comes to the thread that owns the share it is for, or to
// any of them where the channel cannot tell, and now and then to another one: whoever receives it
// hands it to its share.
//
// Locks are taken in this order, and never two of a kind: a share's, mutex_, the operations' own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/core/submission.hpp"
#include "host/transport/division.hpp"
#include "host/transport/operation.hpp"
#include "host/transport/share.hpp"
#include "host/transport/sleeper.hpp"
#include "host/transport/submissions.hpp"

namespace ina::host {

struct TransportStats {
    WorkerCounters worker;
    ChannelCounters channel;
    std::int64_t srtt_ns = 0;  // the largest of all shares, as is the next
    std::int64_t rto_ns = 0;
    std::uint32_t window = 0;           // W, packets
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
    // As of now.
    LaneSnapshot lanes() const;
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
    // All of these throw std::logic_error unless frozen; see WorkerCore for the first three.
    LaneResult lane_result(std::uint32_t lane) const;
    std::vector<PendingTensor> pending() const;
    void put_result(std::uint32_t lane, std::uint32_t seq, const void *data, std::size_t bytes);
    // Ends a pending operation as done or failed. Throws std::invalid_argument when it is not
    // pending.
    void end_operation(std::uint64_t id, bool done);

    // Blocks until watched operations have ended, the transport closes, or the time is over.
    std::vector<std::uint64_t> wait_watched(std::int64_t timeout_ns);
    // Ends what is pending as closed and joins the threads. Idempotent. In a forked child, where
    // the threads do not exist, only marks the transport as closed.
    void close();

  private:
    struct Worker {  // one thread, and what it alone uses
        explicit Worker(std::unique_ptr<Channel> own)
            : channel(std::move(own)),
              sleeper(channel->one_queue_why().empty() ? -1 : channel->fd()),
              batch(channel->burst_packets()) {}

        // The shares it owns: first <= i < end.
        std::size_t first_share = 0;
        std::size_t end_share = 0;
        bool owns(std::size_t share) const { return share >= first_share && share < end_share; }

        const std::unique_ptr<Channel> channel;
        Sleeper sleeper;
        std::vector<PacketView> batch;
        std::vector<Arrival> arrivals;
        std::vector<std::uint8_t> owners;   // the share that each arrival is for, if there are more
        std::uint32_t touched = 0;          // shares with arrivals, as bits
        std::uint64_t passed_on = 0;        // arrivals for other shares
        std::uint64_t refused = 0;          // of the channel's count, what refused_ has
        std::int64_t deadline_ns = kNever;  // of its shares, the earliest
        std::int64_t moderation_ns = 0;     // of its shares, the least, if something has come
        std::uint32_t in_flight = 0;        // of its shares
        std::thread thread;
        bool asleep = false;  // to be woken; guarded by the transport's own mutex
    };

    std::uint32_t shares_of(const Submission &submission) const;
    Share &share_of(std::uint32_t lane) const;
    void check_frozen() const;
    void wake_all() const;
    void close_descriptors();

    // In the threads (transport_threads.cpp).
    void start();
    void run(Worker &worker);
    void sort_arrivals(Worker &worker) const;
    void attend_others(Worker &worker, std::int64_t received_ns);
    bool attend_own(Worker &worker, std::int64_t received_ns);
    bool attend_share(Worker &worker, std::size_t index, std::int64_t received_ns);
    void accept(Worker &worker, std::size_t index, std::int64_t received_ns);
    bool take_inbox(std::size_t index, bool is_owner);
    void transmit(Worker &worker, Share &share);
    void note_failure(const WorkerCore &core);
    void sleep(Worker &worker);
    void leave(Worker &worker);
    // With mutex_ held.
    bool is_ending() const { return failed_ || halted_ || frozen_ || stopping_; }

    const int owner_pid_;
    std::vector<std::unique_ptr<Share>> shares_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::uint32_t window_;
    ShareFinder finder_;
    Operations operations_;
    std::atomic<std::int64_t> progress_ns_{0};  // when a result was accepted last
    std::atomic<std::uint64_t> refused_{0};     // refusals since then
    std::atomic<std::uint64_t> agreed_{0};      // the most that WorkerCore::agreed of any share is

    std::mutex close_mutex_;
    mutable std::mutex mutex_;                 // guards what follows, and the shares' inboxes
    mutable std::condition_variable stopped_;  // halted, failed or closing; or no thread runs
    SubmissionOrder order_;
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
