#include "host/transport/sleeper.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace ina::host {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
// epoll_pwait2, which older libc headers and kernels before 5.11 do not have; the same number on
// all architectures.
constexpr long kEpollPwait2 = 441;
constexpr std::uint32_t kWake = 0;
constexpr std::uint32_t kPackets = 1;
constexpr std::uint32_t kTimer = 2;

timespec time_of(std::int64_t wait_ns) {
    timespec time{};
    time.tv_sec = static_cast<time_t>(wait_ns / kNanosecondsPerSecond);
    time.tv_nsec = static_cast<long>(wait_ns % kNanosecondsPerSecond);
    return time;
}

int checked(int fd, const char *what) {
    if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
    return fd;
}

epoll_event event_of(std::uint32_t events, std::uint32_t what) {
    epoll_event event{};
    event.events = events;
    event.data.u32 = what;
    return event;
}

void add(int epoll_fd, int fd, std::uint32_t events, std::uint32_t what) {
    epoll_event event = event_of(events, what);
    int done = ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    if (done != 0 && errno == EINVAL) {  // an epoll descriptor itself: then it wakes all
        event.events = events & ~static_cast<std::uint32_t>(EPOLLEXCLUSIVE);
        done = ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
    checked(done, "epoll_ctl");
}

}  // namespace

Sleeper::Sleeper(int shared_fd) : is_shared_(shared_fd >= 0) {
    try {
        wake_fd_ = checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
        timer_fd_ =
            checked(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd");
        epoll_fd_ = checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create");
        add(epoll_fd_, wake_fd_, EPOLLIN, kWake);
        add(epoll_fd_, timer_fd_, EPOLLIN, kTimer);
        if (is_shared_) add(epoll_fd_, shared_fd, EPOLLIN | EPOLLEXCLUSIVE, kPackets);
    } catch (...) {
        close();
        throw;
    }
}

Sleeper::~Sleeper() { close(); }

void Sleeper::close() {
    // The epoll instance first: it refers to files, not to descriptors.
    for (int *const fd : {&epoll_fd_, &timer_fd_, &wake_fd_}) {
        if (*fd >= 0) ::close(*fd);
        *fd = -1;
    }
}

void Sleeper::watch(int fd) {
    if (is_shared_ || fd == watched_fd_) return;
    // It may be closed by now.
    if (watched_fd_ >= 0) (void)::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, watched_fd_, nullptr);
    watched_fd_ = -1;
    if (fd >= 0) add(epoll_fd_, fd, EPOLLIN, kPackets);
    watched_fd_ = fd;
}

void Sleeper::leave_packets(bool to_another) {
    if (watched_fd_ < 0) return;
    epoll_event event = event_of(to_another ? 0 : EPOLLIN, kPackets);
    (void)::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, watched_fd_, &event);
}

void Sleeper::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
}

void Sleeper::wake_at(std::int64_t time_ns) {
    if (time_ns == timer_ns_) return;
    timer_ns_ = time_ns;
    itimerspec timer{};  // of 0 never ends
    if (time_ns != kNoTime) timer.it_value = time_of(std::max<std::int64_t>(time_ns, 1));
    (void)::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &timer, nullptr);
}

void Sleeper::rise(std::int64_t now_ns) {
    std::uint64_t ignored = 0;
    if (std::exchange(was_woken_, false)) (void)!::read(wake_fd_, &ignored, sizeof ignored);
    if (timer_ns_ > now_ns) return;
    (void)!::read(timer_fd_, &ignored, sizeof ignored);
    timer_ns_ = kNoTime;
}

void Sleeper::sleep(std::int64_t wait_ns) {
    std::array<epoll_event, 3> events{};
    const timespec timeout = time_of(std::max<std::int64_t>(wait_ns, 0));
    const timespec *const until = wait_ns < 0 ? nullptr : &timeout;
    long count = -1;
    if (has_pwait2_) {
        count = ::syscall(kEpollPwait2, epoll_fd_, events.data(), events.size(), until, nullptr, 0);
        has_pwait2_ = count >= 0 || (errno != ENOSYS && errno != EPERM);
    }
    if (!has_pwait2_) {
        pollfd entry{epoll_fd_, POLLIN, 0};
        (void)::ppoll(&entry, 1, until, nullptr);
        count = ::epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
    }
    for (long i = 0; i < count; ++i) {
        if (events[static_cast<std::size_t>(i)].data.u32 == kWake) was_woken_ = true;
    }
}

void Sleeper::pause(std::int64_t wait_ns) {
    const timespec timeout = time_of(wait_ns);
    pollfd entry{wake_fd_, POLLIN, 0};
    (void)::ppoll(&entry, 1, &timeout, nullptr);
    if ((entry.revents & POLLIN) != 0) was_woken_ = true;
}

bool Sleeper::stand_in(int fd, std::int64_t wait_ns) const {
    const timespec timeout = time_of(std::max<std::int64_t>(wait_ns, 0));
    std::array<pollfd, 2> entries{pollfd{fd, POLLIN, 0}, pollfd{wake_fd_, POLLIN, 0}};
    (void)::ppoll(entries.data(), entries.size(), &timeout, nullptr);
    return (entries[1].revents & POLLIN) == 0;
}

}  // namespace ina::host
