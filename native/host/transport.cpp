#include "host/transport.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "host/adaptive_window.hpp"

namespace ina::host {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// A batch thread (sched(7)) does not preempt whoever wakes it. On a machine whose cores are all
// busy the switch then finishes its batch instead of losing its core to each worker that it wakes,
// and this thread finds more packets when it runs. Best effort; where a core is free it changes
// nothing.
void give_way() {
    const sched_param no_priority{};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &no_priority);
}

std::uint32_t in_flight_limit(const Channel &channel, const WorkerConfig &config,
                              std::uint32_t wanted) {
    const std::uint32_t room =
        std::min(channel.room_packets(config.values_per_packet), std::max(config.slots / 2, 1u));
    return wanted == 0 ? room : std::min(room, wanted);
}

}  // namespace

bool Operation::wait(std::int64_t timeout_ns) const {
    std::unique_lock lock(board_->mutex);
    return board_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                                    [&] { return state() != OperationState::kPending; });
}

void Operation::watch() {
    const std::lock_guard lock(board_->mutex);
    if (state() == OperationState::kPending) {
        watched_ = true;
        return;
    }
    board_->watched_done.push_back(id_);
    board_->changed.notify_all();
}

void Operation::end(OperationState state) {
    state_.store(state, std::memory_order_release);
    if (watched_) board_->watched_done.push_back(id_);
}

Transport::Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
                     std::uint32_t max_in_flight)
    : channel_(std::move(channel)),
      core_(config,
            std::make_unique<AdaptiveWindow>(in_flight_limit(*channel_, config, max_in_flight)),
            channel_->packet_memory()),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), owner_pid_(::getpid()),
      board_(std::make_shared<CompletionBoard>()), batch_(channel_->burst_packets()) {
    if (wake_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    // Signals belong to the interpreter's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "ina-worker");  // for top and perf
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Transport::~Transport() { close(); }

std::shared_ptr<Operation> Transport::submit(TensorRequest request) {
    const std::lock_guard lock(mutex_);
    if (frozen_ && !failed_ && !stopping_) throw std::logic_error("the transport is frozen");
    request.id = next_id_++;
    auto operation = std::make_shared<Operation>(request.id, board_);
    if (failed_ || stopping_) {
        operation->state_ = failed_ ? OperationState::kFailed : OperationState::kClosed;
        return operation;
    }
    inbox_.push_back({request, operation});
    if (std::exchange(asleep_, false)) wake();
    return operation;
}

void Transport::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
}

TransportStats Transport::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

std::optional<StallReport> Transport::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

LaneSnapshot Transport::lanes() {
    std::unique_lock lock(mutex_);
    const std::uint64_t taken = lanes_taken_;
    lanes_wanted_ = true;
    if (std::exchange(asleep_, false)) wake();
    answered_.wait(lock, [&] { return lanes_taken_ != taken || !running_; });
    return running_ ? lanes_ : core_.lanes(now_ns());
}

void Transport::fail() {
    const std::lock_guard lock(mutex_);
    if (failed_ || stopping_) return;
    failed_ = true;
    if (running_) {
        wake();
    } else {
        end_all(OperationState::kFailed);  // frozen
    }
}

bool Transport::freeze() {
    std::unique_lock lock(mutex_);
    if (failed_ || stopping_) return false;
    frozen_ = true;
    wake();
    answered_.wait(lock, [&] { return !running_; });
    return !failed_ && !stopping_;
}

void Transport::check_frozen() const {
    if (!frozen_ || running_ || stopping_) throw std::logic_error("the transport is not frozen");
}

LaneResult Transport::lane_result(std::uint32_t lane) const {
    const std::lock_guard lock(mutex_);
    check_frozen();
    return core_.lane_result(lane);
}

std::vector<PendingTensor> Transport::pending() const {
    const std::lock_guard lock(mutex_);
    check_frozen();
    return core_.pending();
}

void Transport::put_result(std::uint32_t lane, std::uint32_t seq, const void *data,
                           std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    check_frozen();
    core_.put_result(lane, seq, data, bytes);
}

void Transport::end_operation(std::uint64_t id, bool done) {
    const std::lock_guard lock(mutex_);
    check_frozen();
    const auto found = pending_.find(id);
    if (found == pending_.end()) {
        throw std::invalid_argument("operation " + std::to_string(id) + " is not pending");
    }
    const std::lock_guard board(board_->mutex);
    found->second->end(done ? OperationState::kDone : OperationState::kFailed);
    pending_.erase(found);
    board_->changed.notify_all();
}

std::vector<std::uint64_t> Transport::wait_watched(std::int64_t timeout_ns) {
    std::unique_lock lock(board_->mutex);
    board_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                             [&] { return !board_->watched_done.empty() || board_->closed; });
    return std::exchange(board_->watched_done, {});
}

void Transport::close() {
    if (::getpid() != owner_pid_) {
        // The locks may be held by threads that this process does not have. Its own is one of them:
        // the handle is neither joined nor detached but leaked, for pthread would look into memory
        // that may by now belong to another thread.
        if (thread_.joinable()) static_cast<void>(new std::thread(std::move(thread_)));
        close_descriptors();
        return;
    }
    const std::lock_guard closing(close_mutex_);
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    if (!thread_.joinable()) return;
    wake();
    thread_.join();
    const std::lock_guard lock(mutex_);
    end_all(OperationState::kClosed);  // what a frozen transport still has
    const std::lock_guard board(board_->mutex);
    board_->closed = true;
    board_->changed.notify_all();
    close_descriptors();
}

void Transport::close_descriptors() {
    channel_->close();
    if (wake_fd_ >= 0) ::close(wake_fd_);
    wake_fd_ = -1;
}

void Transport::run() {
    give_way();
    bool more_to_read = false;
    while (take_requests()) {
        transmit();
        if (!more_to_read) wait_for_event();
        const std::int64_t time_ns = now_ns();
        more_to_read = channel_->receive(&arrivals_);
        for (const Arrival &arrival : arrivals_) {
            core_.on_result(arrival.data, arrival.bytes, time_ns, arrival.ip_marked,
                            arrival.values);
        }
        channel_->release();
        note_results();
        end_operations();
    }
    leave();
}

// False when the thread is to end.
bool Transport::take_requests() {
    std::vector<Submission> taken;
    {
        const std::lock_guard lock(mutex_);
        asleep_ = false;
        publish_stats();
        if (failed_ || frozen_ || stopping_) return false;
        taken.swap(inbox_);
        if (std::exchange(lanes_wanted_, false)) {
            lanes_ = core_.lanes(now_ns());
            ++lanes_taken_;
            answered_.notify_all();
        }
    }
    const std::int64_t time_ns = taken.empty() ? 0 : now_ns();
    for (Submission &submission : taken) {
        pending_.emplace(submission.request.id, std::move(submission.operation));
        core_.submit(submission.request, time_ns);
    }
    return true;
}

// With mutex_ held: whether the session thread has something to do before it sleeps.
bool Transport::has_requests() const {
    return !inbox_.empty() || lanes_wanted_ || failed_ || frozen_ || stopping_;
}

void Transport::note_results() {
    const WorkerCounters &counters = core_.counters();
    const std::uint64_t results = counters.chunks_done + counters.exponent_rounds;
    if (results == std::exchange(results_seen_, results)) return;
    refused_at_result_ = channel_->counters().refused;
}

// The session thread's last act: ends what is pending, or, frozen, leaves it with all that was
// submitted in the core.
void Transport::leave() {
    const std::lock_guard lock(mutex_);
    for (Submission &submission : inbox_) {
        pending_.emplace(submission.request.id, std::move(submission.operation));
        if (frozen_) core_.submit(submission.request, now_ns());
    }
    inbox_.clear();
    if (failed_ || stopping_) {
        end_all(failed_ ? OperationState::kFailed : OperationState::kClosed);
    } else {
        end_done(core_.take_completions());  // empty tensors
    }
    publish_stats();
    running_ = false;
    answered_.notify_all();
}

// With mutex_ held.
void Transport::publish_stats() {
    stats_.worker = core_.counters();
    stats_.channel = channel_->counters();
    stats_.srtt_ns = core_.srtt_ns();
    stats_.rto_ns = core_.rto_ns();
    stats_.window = core_.window();
    stats_.in_flight_limit = core_.in_flight_limit();
    stats_.in_flight = core_.in_flight();
    stats_.receive_buffer_bytes = channel_->receive_buffer_bytes();
    stats_.refused_since_result = channel_->counters().refused - refused_at_result_;
    stats_.gso = channel_->uses_gso();
    stats_.gro = channel_->uses_gro();
    stats_.kind = channel_->kind();
}

void Transport::transmit() {
    std::size_t count = 0;
    do {
        count = core_.poll_transmit(now_ns(), batch_.data(), batch_.size());
        channel_->send(batch_.data(), count);
    } while (count == batch_.size());
    end_operations();  // empty tensors, or a stall
}

void Transport::wait_for_event() {
    {
        const std::lock_guard lock(mutex_);
        if (has_requests()) return;
        asleep_ = true;
    }
    if (!channel_->prepare_sleep(core_.in_flight())) return;  // take_requests() clears asleep_
    const std::int64_t time_ns = now_ns();
    const std::int64_t deadline_ns = core_.next_deadline_ns(time_ns);
    const std::int64_t wait_ns = std::max<std::int64_t>(deadline_ns - time_ns, 0);
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(wait_ns / kNanosecondsPerSecond);
    timeout.tv_nsec = static_cast<long>(wait_ns % kNanosecondsPerSecond);
    pollfd entries[] = {{channel_->fd(), POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    (void)::ppoll(entries, 2, deadline_ns == kNever ? nullptr : &timeout, nullptr);
    if ((entries[1].revents & POLLIN) != 0) {
        std::uint64_t ignored = 0;
        (void)!::read(wake_fd_, &ignored, sizeof ignored);
    }
}

void Transport::end_operations() {
    const std::vector<std::uint64_t> done = core_.take_completions();
    if (!done.empty() || core_.stall()) {
        // Whoever sees the operation ended also sees it counted.
        const std::lock_guard lock(mutex_);
        publish_stats();
        if (core_.stall() && !failed_ && !frozen_ && !stopping_) {
            failed_ = true;
            failure_ = core_.stall();
        }
    }
    end_done(done);
}

void Transport::end_done(const std::vector<std::uint64_t> &ids) {
    if (ids.empty()) return;
    const std::lock_guard lock(board_->mutex);
    for (const std::uint64_t id : ids) {
        const auto found = pending_.find(id);
        found->second->end(OperationState::kDone);
        pending_.erase(found);
    }
    board_->changed.notify_all();
}

void Transport::end_all(OperationState state) {
    const std::lock_guard lock(board_->mutex);
    for (auto &[id, operation] : pending_) operation->end(state);
    pending_.clear();
    board_->changed.notify_all();
}

}  // namespace ina::host
