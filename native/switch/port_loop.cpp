#include "switch/port_loop.hpp"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>

#include "common/short_slices.hpp"
#include "switch/whole_frame.hpp"

namespace ina::sw {

namespace {
// 512 packets of 1 KiB to 32 workers are 17 MiB in the worst case; process() stops early when the
// arena is full and is called again, so this only has to hold the copies of one packet.
constexpr size_t kOutputBytes = 8 << 20;
constexpr size_t kOutputPackets = 8192;
constexpr size_t kQueuePackets = 4096;
}  // namespace

PortLoop::PortLoop(uint32_t cpu_port)
    : cpu_port_(cpu_port), output_arena_(new uint8_t[kOutputBytes]),
      output_packets_(kOutputPackets), depth_pkts_(INA_MAX_PORTS, 0) {
    output_.arena = output_arena_.get();
    output_.arena_bytes = kOutputBytes;
    output_.packets = output_packets_.data();
    output_.capacity = kOutputPackets;
    output_.depth_pkts = depth_pkts_.data();
}

PortLoop::~PortLoop() {
    stop();
    if (epoll_fd_ >= 0) ::close(epoll_fd_);
    if (wake_fd_ >= 0) ::close(wake_fd_);
    if (alarm_fd_ >= 0) ::close(alarm_fd_);
}

void PortLoop::add(std::shared_ptr<Port> port) {
    by_number_.at(port->number()) = port.get();
    ports_.push_back(std::move(port));
}

void PortLoop::start() {
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (epoll_fd_ < 0 || wake_fd_ < 0)
        throw std::system_error(errno, std::generic_category(), "epoll");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr;
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event);
    if (std::any_of(ports_.begin(), ports_.end(),
                    [](const auto &port) { return port->delay_ns() != 0; })) {
        alarm_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        event.data.ptr = &alarm_fd_;
        if (alarm_fd_ < 0 || epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, alarm_fd_, &event) < 0)
            throw std::system_error(errno, std::generic_category(), "timerfd");
    }
    const auto every_port = [this](auto takes) {
        return std::all_of(ports_.begin(), ports_.end(), takes);
    };
    output_.share_tails = every_port([](const auto &port) { return port->takes_tails(); });
    if (every_port([](const auto &port) { return port->takes_trailers(); }))
        output_.share_tails = INA_TRAILERS;
    for (const auto &port : ports_) {
        if (port->fd() < 0) continue;
        event.data.ptr = port.get();
        if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, port->fd(), &event) < 0)
            throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
    // Signals are Python's: this thread must never be chosen for one.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "ina-port-loop");  // for top, and ina bench switch
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void PortLoop::stop() {
    stopping_ = true;
    if (!thread_.joinable()) return;
    wake();
    thread_.join();
    {
        std::lock_guard lock(pipeline_mutex_);
        pipeline_ = nullptr;
        state_ = nullptr;
    }
    std::lock_guard lock(queue_mutex_);
    cpu_ready_.notify_all();
}

void PortLoop::wake() {
    const uint64_t one = 1;
    // Fails only when the counter is at its maximum: then the loop is awake anyhow.
    [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

void PortLoop::set_pipeline(const ina_pipeline *pipeline, void *state) {
    pipeline_waiters_.fetch_add(1);
    {
        std::lock_guard lock(pipeline_mutex_);
        pipeline_ = pipeline;
        state_ = state;
        has_pipeline_ = pipeline != nullptr;
    }
    pipeline_waiters_.fetch_sub(1);
    if (wake_fd_ >= 0) wake();
}

bool PortLoop::inject(uint32_t port, std::string packet) {
    {
        std::lock_guard lock(queue_mutex_);
        if (injected_.size() == kQueuePackets) return false;
        injected_.emplace_back(port, std::move(packet));
    }
    if (wake_fd_ >= 0) wake();
    return true;
}

bool PortLoop::next_cpu_packet(uint64_t timeout_ns, std::string *packet) {
    std::unique_lock lock(queue_mutex_);
    cpu_ready_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                        [&] { return !to_cpu_.empty() || stopping_; });
    if (to_cpu_.empty()) return false;
    *packet = std::move(to_cpu_.front());
    to_cpu_.pop_front();
    return true;
}

PortLoop::Stats PortLoop::stats() const {
    return {unknown_port_.get(), oversize_.get(), cpu_.get(), cpu_dropped_.get(),
            injected_count_.get()};
}

bool PortLoop::always_ready() const {
    if (!has_pipeline_) return false;  // a file's packets wait for the program
    for (const auto &port : ports_)
        if (port->fd() < 0 && !port->finished()) return true;
    return false;
}

void PortLoop::run() {
    take_short_slices(SCHED_OTHER);
    std::array<epoll_event, 64> events;
    std::vector<Port *> polled;  // those with packets that their descriptor does not tell of
    while (!stopping_) {
        polled.clear();
        for (const auto &port : ports_)
            if (!port->prepare_sleep()) polled.push_back(port.get());
        if (alarm_fd_ >= 0) set_alarm();
        const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()),
                                     always_ready() || !polled.empty() ? 0 : -1);
        batch_.now_ns = monotonic_ns();
        for (int i = 0; i < count; ++i) {
            void *const source = events[static_cast<size_t>(i)].data.ptr;
            if (source == &alarm_fd_) continue;  // it rings until it is set again
            if (auto *port = static_cast<Port *>(source)) {
                if (!batch_.has_room()) process();
                port->receive(&batch_);
            } else {
                uint64_t ignored;
                [[maybe_unused]] const ssize_t bytes = read(wake_fd_, &ignored, sizeof ignored);
                collect_injected();
            }
        }
        for (Port *const port : polled) {
            if (!batch_.has_room()) process();
            port->receive(&batch_);
        }
        if (always_ready()) {
            for (const auto &port : ports_) {
                if (port->fd() >= 0 || port->finished()) continue;
                if (!batch_.has_room()) process();
                port->receive(&batch_);
            }
        }
        process();
        if (alarm_fd_ >= 0) send_due();
    }
}

void PortLoop::set_alarm() {
    uint64_t due_ns = kNeverNs;
    for (const auto &port : ports_) due_ns = std::min(due_ns, port->due_ns());
    if (due_ns == alarm_ns_) return;
    alarm_ns_ = due_ns;
    itimerspec when{};  // all 0: never
    if (due_ns != kNeverNs) {
        when.it_value.tv_sec = static_cast<time_t>(due_ns / 1'000'000'000u);
        when.it_value.tv_nsec = static_cast<long>(due_ns % 1'000'000'000u);
    }
    timerfd_settime(alarm_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void PortLoop::send_due() {
    const uint64_t now_ns = monotonic_ns();
    for (const auto &port : ports_) port->send_due(now_ns);
}

void PortLoop::collect_injected() {
    std::deque<std::pair<uint32_t, std::string>> taken;
    {
        std::lock_guard lock(queue_mutex_);
        taken.swap(injected_);
    }
    for (const auto &[port, packet] : taken) {
        if (!batch_.has_room()) process();
        uint8_t *frame = batch_.reserve(packet.size());
        std::memcpy(frame, packet.data(), packet.size());
        batch_.commit(packet.size(), port, batch_.now_ns);
        injected_count_.add(1);
    }
}

void PortLoop::process() {
    const std::vector<ina_packet_in> &packets = batch_.packets();
    size_t done = 0;
    while (done < packets.size()) {
        while (pipeline_waiters_.load() != 0) std::this_thread::yield();
        size_t consumed;
        {
            std::lock_guard lock(pipeline_mutex_);
            if (!pipeline_) break;
            output_.count = output_.arena_used = 0;
            consumed =
                pipeline_->process(state_, packets.data() + done, packets.size() - done, &output_);
        }
        if (consumed == 0 && output_.count == 0) {
            oversize_.add(1);
            consumed = 1;
        }
        done += consumed;
        distribute();
    }
    for (; done < packets.size(); ++done)
        if (Port *port = by_number_[packets[done].port % INA_MAX_PORTS])
            port->mutable_counters().no_pipeline_packets.add(1);
    batch_.clear();
}

void PortLoop::distribute() {
    for (size_t i = 0; i < output_.count; ++i) {
        const ina_packet_out &packet = output_.packets[i];
        const uint32_t number = packet.port % INA_MAX_PORTS;
        if (outgoing_[number].empty()) outgoing_ports_.push_back(number);
        outgoing_[number].push_back(packet);
    }
    for (const uint32_t number : outgoing_ports_) {
        std::vector<ina_packet_out> &packets = outgoing_[number];
        depth_pkts_[number] = 0;
        if (number == cpu_port_) {
            std::lock_guard lock(queue_mutex_);
            for (const ina_packet_out &packet : packets) {
                cpu_.add(1);
                if (to_cpu_.size() == kQueuePackets)
                    cpu_dropped_.add(1);
                else
                    to_cpu_.push_back(whole_frame(packet));
            }
            cpu_ready_.notify_one();
        } else if (Port *port = by_number_[number]) {
            port->send(&packets);
        } else {
            unknown_port_.add(packets.size());
        }
        packets.clear();
    }
    outgoing_ports_.clear();
}

}  // namespace ina::sw
