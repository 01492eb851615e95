// How one of several threads sleeps until packets come, somebody wakes it, or a time is over.
//
// Another thread may do its work while it sleeps, and waits for packets in its place (stand_in()).
// One of them at a time does that work, or is about to sleep: all functions but sleep(), pause()
// and wake() are for that one.
#pragma once

#include <cstdint>
#include <limits>

namespace ina::host {

class Sleeper {
  public:
    // `shared_fd`: several sleepers wait for this descriptor, each over a duplicate of its own: of
    // those asleep one is woken for what comes (EPOLLEXCLUSIVE). A thread that is not asleep is
    // not counted on: when it falls asleep next, it sees what has come. -1: watch() names the
    // descriptor, for which no other sleeper waits. Throws std::system_error.
    explicit Sleeper(int shared_fd);
    ~Sleeper();
    Sleeper(const Sleeper &) = delete;
    Sleeper &operator=(const Sleeper &) = delete;

    // Packets come here, unless there is a shared descriptor; -1: nowhere. To be called before a
    // sleep, and with -1 before the descriptor is closed, or is another file's.
    void watch(int fd);
    // At most wait_ns; below 0: without end.
    void sleep(std::int64_t wait_ns);
    // wait_ns, 0 or more, which packets do not end.
    void pause(std::int64_t wait_ns);
    // After each: what ended it is over.
    void rise(std::int64_t now_ns);
    // Ends this sleep, or the next one. From any thread.
    void wake() const;

    // For who does its work while it sleeps.
    static constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::max();
    // This time ends the sleep, or the next one (common/clock.hpp), and none that was named before;
    // kNoTime: none does.
    void wake_at(std::int64_t time_ns);
    // From now on packets do not end the sleep, or do again.
    void leave_packets(bool to_another);
    // Waits at most wait_ns, or until packets come to `fd`. False: somebody has woken the thread.
    bool stand_in(int fd, std::int64_t wait_ns) const;

    // Lets go of descriptors. Idempotent; nothing else may be called afterwards.
    void close();

  private:
    int wake_fd_ = -1;
    int timer_fd_ = -1;
    int epoll_fd_ = -1;
    const bool is_shared_;
    int watched_fd_ = -1;
    std::int64_t timer_ns_ = kNoTime;
    bool was_woken_ = false;  // the thread's own
    bool has_pwait2_ = true;  // too
};

}  // namespace ina::host
