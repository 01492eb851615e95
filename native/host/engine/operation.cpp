#include "host/engine/operation.hpp"

#include <algorithm>
#include <chrono>

#include "common/clock.hpp"

namespace ina::host {

bool Operation::wait(std::int64_t timeout_ns) const {
    const std::int64_t until_ns = now_ns() + timeout_ns;
    const auto has_ended = [&] { return state() != OperationState::kPending; };
    std::unique_lock lock(board_->mutex);
    if (!has_ended() && board_->hands != nullptr && !board_->are_lent) {
        Hands &hands = *board_->hands;
        board_->are_lent = true;
        lock.unlock();
        hands.work_for(*this, until_ns);
        lock.lock();
        board_->are_lent = false;
        if (board_->hands == nullptr) board_->changed.notify_all();  // who takes them back waits
    }
    const std::int64_t left_ns = std::max<std::int64_t>(until_ns - now_ns(), 0);
    return board_->changed.wait_for(lock, std::chrono::nanoseconds(left_ns), has_ended);
}

void Operation::watch() {
    const std::lock_guard lock(board_->mutex);
    if (state() == OperationState::kPending) {
        watched_ = true;
        return;
    }
    board_->watched_done.push_back(id_);
    board_->told.notify_all();
}

void Operation::end(OperationState state) {
    state_.store(state, std::memory_order_release);
    if (!watched_) return;
    board_->watched_done.push_back(id_);
    board_->told.notify_all();
}

std::shared_ptr<Operation> Operations::add(std::uint64_t id, std::uint64_t elems,
                                           std::uint64_t shares, std::int64_t now_ns) {
    const auto state = shares == 0 ? OperationState::kDone : OperationState::kPending;
    auto operation = std::make_shared<Operation>(id, board_, state);
    const std::lock_guard lock(board_->mutex);
    added_ = id;
    operation->watched_ = is_watched_;
    if (shares == 0) {
        ++done_;
        if (is_watched_) board_->watched_done.push_back(id);
        board_->changed.notify_all();
        board_->told.notify_all();
    } else {
        rhythm_.submitted(elems, now_ns);
        pending_.emplace(id, Pending{operation, shares});
    }
    return operation;
}

void Operations::reassign(std::uint64_t id, std::uint64_t shares) {
    const std::lock_guard lock(board_->mutex);
    const auto found = pending_.find(id);
    if (found != pending_.end()) found->second.shares = shares;
}

std::shared_ptr<Operation> Operations::ended(std::uint64_t id, OperationState state) const {
    return std::make_shared<Operation>(id, board_, state);
}

void Operations::share_done(std::uint32_t bit, const std::vector<std::uint64_t> &ids,
                            std::int64_t now_ns) {
    if (ids.empty()) return;
    std::size_t ended = 0;
    const std::lock_guard lock(board_->mutex);
    for (const std::uint64_t id : ids) {
        const auto found = pending_.find(id);
        if (found == pending_.end()) continue;
        found->second.shares &= ~(std::uint64_t{1} << bit);
        if (found->second.shares != 0) continue;
        found->second.operation->end(OperationState::kDone);
        pending_.erase(found);
        ++done_;
        ++ended;
    }
    if (ended == 0) return;
    rhythm_.ended(ended, now_ns);
    board_->changed.notify_all();
}

bool Operations::end(std::uint64_t id, OperationState state, std::int64_t now_ns) {
    const std::lock_guard lock(board_->mutex);
    const auto found = pending_.find(id);
    if (found == pending_.end()) return false;
    found->second.operation->end(state);
    pending_.erase(found);
    rhythm_.ended(1, now_ns);
    board_->changed.notify_all();
    return true;
}

void Operations::end_all(OperationState state, std::int64_t now_ns) {
    const std::lock_guard lock(board_->mutex);
    for (auto &[id, pending] : pending_) pending.operation->end(state);
    rhythm_.ended(pending_.size(), now_ns);
    pending_.clear();
    board_->changed.notify_all();
}

std::uint64_t Operations::done() const {
    const std::lock_guard lock(board_->mutex);
    return done_;
}

bool Operations::wait_before(std::uint64_t id, std::int64_t timeout_ns) {
    const auto all_have_ended = [&] {
        if (added_ + 1 < id) return false;
        return std::none_of(pending_.begin(), pending_.end(),
                            [&](const auto &pending) { return pending.first < id; });
    };
    std::unique_lock lock(board_->mutex);
    bool ended = false;
    board_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                             [&] { return (ended = all_have_ended()) || board_->closed; });
    return ended;
}

RhythmCounters Operations::rhythm(std::int64_t now_ns) const {
    const std::lock_guard lock(board_->mutex);
    return rhythm_.counters(now_ns);
}

std::vector<std::uint64_t> Operations::wait_watched(std::int64_t timeout_ns) {
    std::unique_lock lock(board_->mutex);
    board_->told.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                          [&] { return !board_->watched_done.empty() || board_->closed; });
    return std::exchange(board_->watched_done, {});
}

std::vector<std::uint64_t> Operations::take_watched() {
    const std::lock_guard lock(board_->mutex);
    return std::exchange(board_->watched_done, {});
}

void Operations::close() {
    const std::lock_guard lock(board_->mutex);
    board_->closed = true;
    board_->changed.notify_all();
    board_->told.notify_all();
}

void Operations::lend(Hands *hands) {
    std::unique_lock lock(board_->mutex);
    board_->hands = hands;
    if (hands == nullptr) board_->changed.wait(lock, [&] { return !board_->are_lent; });
}

}  // namespace ina::host
