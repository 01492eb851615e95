// Weighted sums of a packet's values, for their check (sum_check.hpp), and how large integers are.
//
// In integers that wrap around, so every instruction set gives the same bits, in any order of the
// additions. Where not said otherwise the bodies are plain loops that the compiler vectorises for
// each set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ina::host {

struct WeighKernels {
    const char *name;
    // The sum of a_i (v_i + 2^31), modulo 2^64, with a_i = low[i] + 2^32 high[i]; `wire`: int32
    // values v_i, big endian.
    std::uint64_t (*wide)(const std::uint8_t *wire, const std::uint32_t *low,
                          const std::uint32_t *high, std::size_t values);
    // The bits besides signs that some of the values use; `values`: int32 of this host's byte
    // order, at any address.
    std::uint32_t (*used_bits)(const std::uint8_t *values, std::size_t count);
};

// The fastest set that this processor runs; chosen once.
const WeighKernels &best_weigh_kernels();
// Every set that this processor runs, slowest first; for tests and benchmarks.
const std::vector<const WeighKernels *> &available_weigh_kernels();

}  // namespace ina::host
