#include "host/core/weigh.hpp"

#include <cstring>

#include "host/core/float_formats.hpp"
#include "host/core/half_vectors.hpp"

namespace ina::host {
namespace {

INA_ALWAYS_INLINE std::uint32_t value_at(const std::uint8_t *wire, std::size_t index) {
    std::uint32_t value;
    std::memcpy(&value, wire + index * sizeof value, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

// Products of 32 by 32 bits are what processors multiply fastest; the upper half of a weight moves
// the upper half of the sum alone.
INA_ALWAYS_INLINE std::uint64_t wide_body(const std::uint8_t *wire, const std::uint32_t *low,
                                          const std::uint32_t *high, std::size_t values) {
    std::uint64_t low_sum = 0;
    std::uint32_t high_sum = 0;
    for (std::size_t i = 0; i < values; ++i) {
        const std::uint32_t value = value_at(wire, i) ^ 0x80000000;  // v + 2^31, without a sign
        low_sum += std::uint64_t{low[i]} * value;
        high_sum += high[i] * value;
    }
    return low_sum + (std::uint64_t{high_sum} << 32);
}

INA_ALWAYS_INLINE std::uint32_t narrow_body(const std::uint8_t *wire, const std::uint32_t *low,
                                            std::size_t values) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < values; ++i) sum += low[i] * value_at(wire, i);
    return sum;
}

#define INA_WEIGH_KERNELS(NAME, LABEL, ATTRIBUTE)                                                  \
    namespace NAME##_weigh {                                                                       \
        ATTRIBUTE std::uint64_t wide(const std::uint8_t *wire, const std::uint32_t *low,           \
                                     const std::uint32_t *high, std::size_t values) {              \
            return wide_body(wire, low, high, values);                                             \
        }                                                                                          \
        ATTRIBUTE std::uint32_t narrow(const std::uint8_t *wire, const std::uint32_t *low,         \
                                       std::size_t values) {                                       \
            return narrow_body(wire, low, values);                                                 \
        }                                                                                          \
        constexpr WeighKernels kKernels{LABEL, wide, narrow};                                      \
    }

INA_WEIGH_KERNELS(generic, "generic", )
#if defined(INA_X86_KERNELS)
INA_WEIGH_KERNELS(avx2, "avx2", INA_AVX2)
INA_WEIGH_KERNELS(avx512, "avx512", INA_AVX512)
#elif defined(INA_NEON_KERNELS)
INA_WEIGH_KERNELS(neon, "neon", )
#endif

std::vector<const WeighKernels *> find_kernels() {
    std::vector<const WeighKernels *> found{&generic_weigh::kKernels};
#if defined(INA_X86_KERNELS)
    if (has_avx2()) found.push_back(&avx2_weigh::kKernels);
    if (has_avx512()) found.push_back(&avx512_weigh::kKernels);
#elif defined(INA_NEON_KERNELS)
    found.push_back(&neon_weigh::kKernels);
#endif
    return found;
}

}  // namespace

const std::vector<const WeighKernels *> &available_weigh_kernels() {
    static const std::vector<const WeighKernels *> found = find_kernels();
    return found;
}

const WeighKernels &best_weigh_kernels() {
    static const WeighKernels &best = *available_weigh_kernels().back();
    return best;
}

}  // namespace ina::host
