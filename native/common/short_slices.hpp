// How a thread that packets wait for asks the scheduler for prompt turns.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace ina {

// Of the processor, at a time. A packet waits for several threads in turn; a usual slice, of about
// 3 ms, of a neighbour of each is more than a whole window lasts on a link of 1 Gbit/s.
inline constexpr std::uint64_t kSliceNs = 100'000;

// The calling thread gets `policy`, SCHED_OTHER or SCHED_BATCH, its nice value as it is, and short
// slices: it gets no more of a busy core than before, but sooner when something comes for it, and
// sched_yield() gives up no more than such a slice. Linux takes slices from 6.12 on, and ignores
// them before. Best effort: a sandbox may forbid the call. A thread of another policy, as of
// real time, keeps it.
inline void take_short_slices(int policy) noexcept {
    struct {  // sched_setattr(2), which older libc headers do not carry; its first version
        std::uint32_t size;
        std::uint32_t policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime_ns, deadline_ns, period_ns;
    } wanted{};
    if (::syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) != 0) return;
    if (wanted.policy != SCHED_OTHER && wanted.policy != SCHED_BATCH) return;
    wanted.policy = static_cast<std::uint32_t>(policy);
    wanted.runtime_ns = kSliceNs;
    (void)::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

}  // namespace ina
