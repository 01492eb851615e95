// Drives one WorkerCore over one channel in one thread: operations, completions, recovery. The
// thread sleeps in ppoll whenever there is nothing to send or read: several workers may share a
// core.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "host/channel.hpp"
#include "host/worker_core.hpp"

namespace ina::host {

enum class OperationState : std::uint8_t { kPending, kDone, kFailed, kClosed };

// Where waiters meet the session thread; outlives the transport while an operation refers to it.
struct CompletionBoard {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::uint64_t> watched_done;  // operations to report to wait_watched
    bool closed = false;
};

// One submitted tensor.
class Operation {
  public:
    Operation(std::uint64_t id, std::shared_ptr<CompletionBoard> board)
        : id_(id), board_(std::move(board)) {}

    std::uint64_t id() const { return id_; }
    OperationState state() const { return state_.load(std::memory_order_acquire); }
    // Waits until the operation has ended, at most timeout_ns; true when it has.
    bool wait(std::int64_t timeout_ns) const;
    // Asks for a report through Transport::wait_watched: when it ends, or now if it has ended.
    void watch();

  private:
    friend class Transport;
    void end(OperationState state);  // with the board's mutex held

    const std::uint64_t id_;
    const std::shared_ptr<CompletionBoard> board_;
    std::atomic<OperationState> state_{OperationState::kPending};
    bool watched_ = false;
};

struct TransportStats {
    WorkerCounters worker;
    ChannelCounters channel;
    std::int64_t srtt_ns = 0;
    std::int64_t rto_ns = 0;
    std::uint32_t window = 0;           // W, packets
    std::uint32_t in_flight_limit = 0;  // now: W, what the channel holds, or what the path holds
    std::uint32_t in_flight = 0;
    int receive_buffer_bytes = 0;
    // Times that it was plain that no switch is there, since the last accepted result.
    std::uint64_t refused_since_result = 0;
    bool gso = false;
    bool gro = false;
    const char *kind = "";  // the channel's
};

class Transport {
  public:
    // max_in_flight 0: no limit but W and the channel's room. Throws std::system_error,
    // std::invalid_argument.
    Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
              std::uint32_t max_in_flight);
    ~Transport();
    Transport(const Transport &) = delete;
    Transport &operator=(const Transport &) = delete;

    // The request's id is set here. After a failure or close the operation has ended at once;
    // throws std::logic_error after freeze().
    std::shared_ptr<Operation> submit(TensorRequest request);
    TransportStats stats() const;
    // As of now: asks the session thread.
    LaneSnapshot lanes();
    // Ends pending and future operations as failed and stops the session thread. Idempotent; no
    // effect after a failure or close.
    void fail();
    // The stall that made operations fail; empty while none has, and after fail().
    std::optional<StallReport> failure() const;

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
    // Ends what is pending as closed and joins the thread. Idempotent. In a forked child,
    // where the thread does not exist, only marks the transport as closed.
    void close();

  private:
    struct Submission {
        TensorRequest request;
        std::shared_ptr<Operation> operation;
    };

    void run();
    bool take_requests();
    bool has_requests() const;
    void note_results();
    void publish_stats();
    void transmit();
    void wait_for_event();
    void end_operations();
    void end_done(const std::vector<std::uint64_t> &ids);
    void leave();
    void end_all(OperationState state);
    void check_frozen() const;
    void wake() const;
    void close_descriptors();

    const std::unique_ptr<Channel> channel_;  // session thread only, but for close()
    WorkerCore core_;                         // session thread only
    int wake_fd_;
    const int owner_pid_;
    std::shared_ptr<CompletionBoard> board_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Operation>> pending_;  // session thread only
    std::vector<PacketView> batch_;
    std::vector<Arrival> arrivals_;
    std::uint64_t results_seen_ = 0;       // session thread only, as is the next
    std::uint64_t refused_at_result_ = 0;  // the channel's count when the last result came

    std::mutex close_mutex_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable answered_;
    std::vector<Submission> inbox_;
    TransportStats stats_;
    std::optional<StallReport> failure_;
    LaneSnapshot lanes_;
    std::uint64_t lanes_taken_ = 0;
    std::uint64_t next_id_ = 1;
    bool asleep_ = false;
    bool lanes_wanted_ = false;
    bool failed_ = false;  // by a stall, or by fail()
    bool frozen_ = false;
    bool stopping_ = false;  // closing
    bool running_ = true;  // the session thread; once it is not, core_ and pending_ are its heirs'

    std::thread thread_;
};

}  // namespace ina::host
