// How one of several threads sleeps until packets come, somebody wakes it, or a time is over.
#pragma once

#include <cstdint>

namespace ina::host {

class Sleeper {
  public:
    // `shared_fd`: several sleepers wait for this descriptor, each over a duplicate of its own: of
    // those asleep one is woken for what comes (EPOLLEXCLUSIVE). A thread that is not asleep is
    // not counted on: when it falls asleep next, it sees what has come. -1: sleep() names the
    // descriptor, for which no other sleeper waits. Throws std::system_error.
    explicit Sleeper(int shared_fd);
    ~Sleeper();
    Sleeper(const Sleeper &) = delete;
    Sleeper &operator=(const Sleeper &) = delete;

    // At most wait_ns (kernels before 5.11 round it up to 1 ms); below 0: without end. `own_fd`:
    // unless there is a shared one; -1: none.
    void sleep(int own_fd, std::int64_t wait_ns);
    // wait_ns, 0 or more, which packets do not end.
    void pause(std::int64_t wait_ns);
    // Ends this sleep, or the next one. From any thread.
    void wake() const;

    // Lets go of descriptors. Idempotent; nothing else may be called afterwards.
    void close();

  private:
    void sleep_shared(std::int64_t wait_ns);
    void take_wake();

    int wake_fd_;
    int epoll_fd_ = -1;
    bool has_pwait2_ = true;
};

}  // namespace ina::host
