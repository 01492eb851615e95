#include "host/channel/left_core.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace ina::host {

void LeftCore::leave(std::uint32_t core) {
    if (thread_ == 0) thread_ = static_cast<int>(::syscall(SYS_gettid));
    if (core == std::exchange(asked_, core)) return;
    cpu_set_t cores;
    if (sched_getaffinity(thread_, sizeof cores, &cores) != 0) return;
    if (left_ != 0) CPU_SET(left_ - 1, &cores);
    left_ = 0;
    if (core != 0 && core <= CPU_SETSIZE && CPU_ISSET(core - 1, &cores) && CPU_COUNT(&cores) > 1) {
        CPU_CLR(core - 1, &cores);
        left_ = core;
    }
    (void)sched_setaffinity(thread_, sizeof cores, &cores);
}

}  // namespace ina::host
