#include "host/udp_transport.hpp"

#include <poll.h>
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

namespace ina::host {
namespace {

constexpr std::size_t kBatchPackets = 256;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Packets that fit a receive buffer: the kernel charges a datagram of b bytes up to 2 b for the
// memory that holds it, and some 512 bytes for bookkeeping. Each packet in flight brings at most
// one result, but for duplicates; without this bound results are lost in bursts.
std::uint32_t packets_in(int receive_buffer_bytes, std::uint32_t values_per_packet) {
    const std::size_t charged = 2 * wire::packet_bytes(values_per_packet) + 512;
    return static_cast<std::uint32_t>(
        std::max<std::size_t>(static_cast<std::size_t>(receive_buffer_bytes) / charged, 4));
}

std::uint32_t in_flight_limit(const UdpSocket &socket, const WorkerConfig &config,
                              std::uint32_t wanted) {
    const std::uint32_t room = packets_in(socket.receive_buffer_bytes(), config.values_per_packet);
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

UdpTransport::UdpTransport(int fd, const WorkerConfig &config, int receive_buffer_bytes,
                           std::uint32_t max_in_flight, bool trains)
    : socket_(fd, receive_buffer_bytes, trains),
      core_(config, std::make_unique<FixedWindow>(in_flight_limit(socket_, config, max_in_flight))),
      in_flight_limit_(std::min(core_.window(), in_flight_limit(socket_, config, max_in_flight))),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), owner_pid_(::getpid()),
      board_(std::make_shared<CompletionBoard>()), batch_(kBatchPackets) {
    if (wake_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    // Signals belong to the interpreter's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

UdpTransport::~UdpTransport() { close(); }

std::shared_ptr<Operation> UdpTransport::submit(TensorRequest request) {
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

void UdpTransport::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
}

TransportStats UdpTransport::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

std::optional<StallReport> UdpTransport::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

LaneSnapshot UdpTransport::lanes() {
    std::unique_lock lock(mutex_);
    const std::uint64_t taken = lanes_taken_;
    lanes_wanted_ = true;
    if (std::exchange(asleep_, false)) wake();
    answered_.wait(lock, [&] { return lanes_taken_ != taken || !running_; });
    return running_ ? lanes_ : core_.lanes(now_ns());
}

void UdpTransport::fail() {
    const std::lock_guard lock(mutex_);
    if (failed_ || stopping_) return;
    failed_ = true;
    if (running_) {
        wake();
    } else {
        end_all(OperationState::kFailed);  // frozen
    }
}

bool UdpTransport::freeze() {
    std::unique_lock lock(mutex_);
    if (failed_ || stopping_) return false;
    frozen_ = true;
    wake();
    answered_.wait(lock, [&] { return !running_; });
    return !failed_ && !stopping_;
}

void UdpTransport::check_frozen() const {
    if (!frozen_ || running_ || stopping_) throw std::logic_error("the transport is not frozen");
}

LaneResult UdpTransport::lane_result(std::uint32_t lane) const {
    const std::lock_guard lock(mutex_);
    check_frozen();
    return core_.lane_result(lane);
}

std::vector<PendingTensor> UdpTransport::pending() const {
    const std::lock_guard lock(mutex_);
    check_frozen();
    return core_.pending();
}

void UdpTransport::put_result(std::uint32_t lane, std::uint32_t seq, const void *data,
                              std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    check_frozen();
    core_.put_result(lane, seq, data, bytes);
}

void UdpTransport::end_operation(std::uint64_t id, bool done) {
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

std::vector<std::uint64_t> UdpTransport::wait_watched(std::int64_t timeout_ns) {
    std::unique_lock lock(board_->mutex);
    board_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                             [&] { return !board_->watched_done.empty() || board_->closed; });
    return std::exchange(board_->watched_done, {});
}

void UdpTransport::close() {
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

void UdpTransport::close_descriptors() {
    socket_.close();
    if (wake_fd_ >= 0) ::close(wake_fd_);
    wake_fd_ = -1;
}

void UdpTransport::run() {
    bool more_to_read = false;
    while (take_requests()) {
        transmit();
        if (!more_to_read) wait_for_event();
        const std::int64_t time_ns = now_ns();
        more_to_read =
            socket_.receive([&](const std::uint8_t *data, std::size_t bytes, bool marked) {
                core_.on_result(data, bytes, time_ns, marked);
            });
        note_results();
        end_operations();
    }
    leave();
}

// False when the thread is to end.
bool UdpTransport::take_requests() {
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
bool UdpTransport::has_requests() const {
    return !inbox_.empty() || lanes_wanted_ || failed_ || frozen_ || stopping_;
}

void UdpTransport::note_results() {
    const WorkerCounters &counters = core_.counters();
    const std::uint64_t results = counters.chunks_done + counters.exponent_rounds;
    if (results == std::exchange(results_seen_, results)) return;
    refused_at_result_ = socket_.counters().refused;
}

// The session thread's last act: ends what is pending, or, frozen, leaves it with all that was
// submitted in the core.
void UdpTransport::leave() {
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
void UdpTransport::publish_stats() {
    stats_.worker = core_.counters();
    stats_.socket = socket_.counters();
    stats_.srtt_ns = core_.srtt_ns();
    stats_.rto_ns = core_.rto_ns();
    stats_.window = core_.window();
    stats_.in_flight_limit = in_flight_limit_;
    stats_.in_flight = core_.in_flight();
    stats_.receive_buffer_bytes = socket_.receive_buffer_bytes();
    stats_.refused_since_result = socket_.counters().refused - refused_at_result_;
    stats_.gso = socket_.uses_gso();
    stats_.gro = socket_.uses_gro();
}

void UdpTransport::transmit() {
    std::size_t count = 0;
    do {
        count = core_.poll_transmit(now_ns(), batch_.data(), batch_.size());
        socket_.send(batch_.data(), count);
    } while (count == batch_.size());
    end_operations();  // empty tensors, or a stall
}

void UdpTransport::wait_for_event() {
    {
        const std::lock_guard lock(mutex_);
        if (has_requests()) return;
        asleep_ = true;
    }
    const std::int64_t time_ns = now_ns();
    const std::int64_t deadline_ns = core_.next_deadline_ns(time_ns);
    const std::int64_t wait_ns = std::max<std::int64_t>(deadline_ns - time_ns, 0);
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(wait_ns / kNanosecondsPerSecond);
    timeout.tv_nsec = static_cast<long>(wait_ns % kNanosecondsPerSecond);
    pollfd entries[] = {{socket_.fd(), POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    (void)::ppoll(entries, 2, deadline_ns == kNever ? nullptr : &timeout, nullptr);
    if ((entries[1].revents & POLLIN) != 0) {
        std::uint64_t ignored = 0;
        (void)!::read(wake_fd_, &ignored, sizeof ignored);
    }
}

void UdpTransport::end_operations() {
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

void UdpTransport::end_done(const std::vector<std::uint64_t> &ids) {
    if (ids.empty()) return;
    const std::lock_guard lock(board_->mutex);
    for (const std::uint64_t id : ids) {
        const auto found = pending_.find(id);
        found->second->end(OperationState::kDone);
        pending_.erase(found);
    }
    board_->changed.notify_all();
}

void UdpTransport::end_all(OperationState state) {
    const std::lock_guard lock(board_->mutex);
    for (auto &[id, operation] : pending_) operation->end(state);
    pending_.clear();
    board_->changed.notify_all();
}

}  // namespace ina::host
