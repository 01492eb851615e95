// The transport's clock. What decides (WorkerCore) is told the time instead.
#pragma once

#include <chrono>
#include <cstdint>

namespace ina::host {

inline std::int64_t now_ns() {  // monotonic
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace ina::host
