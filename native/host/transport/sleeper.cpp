#include "host/transport/sleeper.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <system_error>

namespace ina::host {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;
// epoll_pwait2, which older libc headers do not carry; the same number on all architectures.
constexpr long kEpollPwait2 = 441;
constexpr std::uint32_t kWake = 0;
constexpr std::uint32_t kPackets = 1;

timespec time_of(std::int64_t wait_ns) {
    timespec time{};
    time.tv_sec = static_cast<time_t>(wait_ns / kNanosecondsPerSecond);
    time.tv_nsec = static_cast<long>(wait_ns % kNanosecondsPerSecond);
    return time;
}

void watch(int epoll_fd, int fd, std::uint32_t events, std::uint32_t what) {
    epoll_event event{};
    event.events = events;
    event.data.u32 = what;
    int done = ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    if (done != 0 && errno == EINVAL) {  // an epoll descriptor itself: then it wakes all
        event.events = events & ~static_cast<std::uint32_t>(EPOLLEXCLUSIVE);
        done = ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
    if (done != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}

}  // namespace

Sleeper::Sleeper(int shared_fd) : wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    if (shared_fd < 0) return;
    try {
        epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (epoll_fd_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create");
        watch(epoll_fd_, wake_fd_, EPOLLIN, kWake);
        watch(epoll_fd_, shared_fd, EPOLLIN | EPOLLEXCLUSIVE, kPackets);
    } catch (...) {
        close();
        throw;
    }
}

Sleeper::~Sleeper() { close(); }

void Sleeper::close() {
    // The epoll instance first: it refers to files, not to descriptors.
    if (epoll_fd_ >= 0) ::close(epoll_fd_);
    if (wake_fd_ >= 0) ::close(wake_fd_);
    epoll_fd_ = wake_fd_ = -1;
}

void Sleeper::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
}

void Sleeper::take_wake() {
    std::uint64_t ignored = 0;
    (void)!::read(wake_fd_, &ignored, sizeof ignored);
}

void Sleeper::sleep(int own_fd, std::int64_t wait_ns) {
    if (epoll_fd_ >= 0) return sleep_shared(wait_ns);
    const timespec timeout = time_of(std::max<std::int64_t>(wait_ns, 0));
    std::array<pollfd, 2> entries{pollfd{own_fd, POLLIN, 0}, pollfd{wake_fd_, POLLIN, 0}};
    (void)::ppoll(entries.data(), entries.size(), wait_ns < 0 ? nullptr : &timeout, nullptr);
    if ((entries[1].revents & POLLIN) != 0) take_wake();
}

void Sleeper::pause(std::int64_t wait_ns) {
    const timespec timeout = time_of(wait_ns);
    pollfd entry{wake_fd_, POLLIN, 0};
    (void)::ppoll(&entry, 1, &timeout, nullptr);
    if ((entry.revents & POLLIN) != 0) take_wake();
}

void Sleeper::sleep_shared(std::int64_t wait_ns) {
    std::array<epoll_event, 2> events{};
    long count = -1;
    if (has_pwait2_) {
        const timespec timeout = time_of(std::max<std::int64_t>(wait_ns, 0));
        count = ::syscall(kEpollPwait2, epoll_fd_, events.data(), events.size(),
                          wait_ns < 0 ? nullptr : &timeout, nullptr, 0);
        has_pwait2_ = count >= 0 || (errno != ENOSYS && errno != EPERM);
    }
    if (!has_pwait2_) {
        const std::int64_t whole_ms = wait_ns / kNanosecondsPerMillisecond +
                                      (wait_ns % kNanosecondsPerMillisecond > 0 ? 1 : 0);
        const int timeout_ms =
            wait_ns < 0 ? -1 : static_cast<int>(std::min<std::int64_t>(whole_ms, INT_MAX));
        count = ::epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), timeout_ms);
    }
    for (long i = 0; i < count; ++i) {
        if (events[static_cast<std::size_t>(i)].data.u32 == kWake) take_wake();
    }
}

}  // namespace ina::host
