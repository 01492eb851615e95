// Packets that share a window: while some of each wait, none has more than its part.
#pragma once

#include <cstddef>

namespace ina::host {

inline constexpr std::size_t kFlows = 2;

}  // namespace ina::host
