// What a caller holds of a submitted tensor, and which of them are under way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/engine/rhythm.hpp"

namespace ina::host {

enum class OperationState : std::uint8_t { kPending, kDone, kFailed, kClosed };

class Operation;

// What can do the work that ends an operation in the thread that waits for it: then no other thread
// has to be woken for what comes, and to wake that one.
class Hands {
  public:
    virtual ~Hands() = default;
    // Returns when it has ended, when it is until_ns, or when another thread had better do the
    // work.
    virtual void work_for(const Operation &operation, std::int64_t until_ns) = 0;
};

// Where waiters meet the session's threads; outlives the transport while an operation refers to it.
struct CompletionBoard {
    std::mutex mutex;
    std::condition_variable changed;
    std::condition_variable told;             // of watched_done, or closed
    std::vector<std::uint64_t> watched_done;  // operations to report to wait_watched
    bool closed = false;
    Hands *hands = nullptr;  // that there are to lend
    bool are_lent = false;   // to one waiter
};

// One submitted tensor.
class Operation {
  public:
    Operation(std::uint64_t id, std::shared_ptr<CompletionBoard> board,
              OperationState state = OperationState::kPending)
        : id_(id), board_(std::move(board)), state_(state) {}

    std::uint64_t id() const { return id_; }
    OperationState state() const { return state_.load(std::memory_order_acquire); }
    // Waits until the operation has ended, at most timeout_ns; true when it has. Meanwhile the
    // thread may do the session's work.
    bool wait(std::int64_t timeout_ns) const;
    // Asks for a report through Operations::wait_watched: when it ends, or now if it has ended.
    void watch();

  private:
    friend class Operations;
    void end(OperationState state);  // with the board's mutex held

    const std::uint64_t id_;
    const std::shared_ptr<CompletionBoard> board_;
    std::atomic<OperationState> state_;
    bool watched_ = false;
};

// An engine's operations. Thread-safe. Times: any monotonic clock's, ns.
class Operations {
  public:
    // is_watched: each operation is reported through take_watched(), whoever asks.
    explicit Operations(bool is_watched = false) : is_watched_(is_watched) {}

    // A new one, which ends as done when all shares with a bit in `shares` are done with it; now if
    // there are none. In the order of their ids.
    // `elems`: how large it is.
    std::shared_ptr<Operation> add(std::uint64_t id, std::uint64_t elems, std::uint64_t shares,
                                   std::int64_t now_ns);
    // From now on it is these shares that have parts of one that is pending.
    void reassign(std::uint64_t id, std::uint64_t shares);
    // One that has ended already.
    std::shared_ptr<Operation> ended(std::uint64_t id, OperationState state) const;
    // The share with this bit is done with these; it may name some that it has no part in, or that
    // have ended.
    void share_done(std::uint32_t bit, const std::vector<std::uint64_t> &ids, std::int64_t now_ns);
    // False: it is not pending.
    bool end(std::uint64_t id, OperationState state, std::int64_t now_ns);
    void end_all(OperationState state, std::int64_t now_ns);
    std::uint64_t done() const;  // so many have ended as done, but for end()
    RhythmCounters rhythm(std::int64_t now_ns) const;
    // Blocks until all before this one have been added and have ended (true), or close() was called
    // or the time is over (false).
    bool wait_before(std::uint64_t id, std::int64_t timeout_ns);

    // Blocks until watched operations have ended, close() was called, or the time is over.
    std::vector<std::uint64_t> wait_watched(std::int64_t timeout_ns);
    std::vector<std::uint64_t> take_watched();  // those that have ended by now
    void close();

    // From now on who waits for an operation may use these, one at a time. Null: nobody may, and
    // nobody does once this returns; who does must have been told to stop.
    void lend(Hands *hands);

  private:
    struct Pending {
        std::shared_ptr<Operation> operation;
        std::uint64_t shares;  // bits of those that are not done with it
    };

    const bool is_watched_;
    const std::shared_ptr<CompletionBoard> board_ = std::make_shared<CompletionBoard>();
    // Guarded by the board's mutex.
    std::unordered_map<std::uint64_t, Pending> pending_;
    std::uint64_t done_ = 0;
    Rhythm rhythm_;
    std::uint64_t added_ = 0;  // the last one's id
};

}  // namespace ina::host
