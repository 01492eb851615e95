// Which of a kind's kernel sets this processor runs. The files that have kernels (quantize.cpp,
// packed.cpp, weigh.cpp) compile their bodies once for each instruction set, in namespaces of these
// names; NEON is part of its processors' baseline.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "host/core/half_vectors.hpp"

// The sets of one kind, each the object SET of its namespace, slowest first.
#if defined(INA_X86_KERNELS)
#define INA_KERNEL_SETS(SET) {&generic::SET, &avx2::SET, &avx512::SET}
#elif defined(INA_NEON_KERNELS)
#define INA_KERNEL_SETS(SET) {&generic::SET, &neon::SET}
#else
#define INA_KERNEL_SETS(SET) {&generic::SET}
#endif

namespace ina::host {

// Of INA_KERNEL_SETS, those that run here, in the same order.
template <typename Set, std::size_t kCount>
std::vector<const Set *> runnable_sets(const Set *const (&compiled)[kCount]) {
#if defined(INA_X86_KERNELS)
    const std::array<bool, kCount> runs{true, has_avx2(), has_avx512()};
#else
    std::array<bool, kCount> runs;
    runs.fill(true);
#endif
    std::vector<const Set *> found;
    for (std::size_t i = 0; i < kCount; ++i) {
        if (runs[i]) found.push_back(compiled[i]);
    }
    return found;
}

}  // namespace ina::host
