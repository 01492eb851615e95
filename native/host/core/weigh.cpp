#include "host/core/weigh.hpp"

#include <cstring>

#include "host/core/float_formats.hpp"
#include "host/core/half_vectors.hpp"
#include "host/core/kernel_sets.hpp"

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

constexpr std::uint32_t kSign = 0x80000000;

// Products of 32 by 32 bits are what processors multiply fastest; the upper half of a weight moves
// the upper half of the sum alone.
INA_ALWAYS_INLINE std::uint64_t wide_body(const std::uint8_t *wire, const std::uint32_t *low,
                                          const std::uint32_t *high, std::size_t values) {
    std::uint64_t low_sum = 0;
    std::uint32_t high_sum = 0;
    for (std::size_t i = 0; i < values; ++i) {
        const std::uint32_t value = value_at(wire, i) ^ kSign;  // v + 2^31, without a sign
        low_sum += std::uint64_t{low[i]} * value;
        high_sum += high[i] * value;
    }
    return low_sum + (std::uint64_t{high_sum} << 32);
}

INA_ALWAYS_INLINE std::uint32_t used_bits_body(const std::uint8_t *values, std::size_t count) {
    std::uint32_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::int32_t value;
        std::memcpy(&value, values + i * sizeof value, sizeof value);
        used |= static_cast<std::uint32_t>(value ^ (value >> 31));
    }
    return used;
}

#if defined(INA_X86_KERNELS)

// Compilers widen each value to 64 bits before they multiply, which takes half as long again as
// the products: these multiply the even values where they are, and the odd ones moved by one.

INA_AVX2 inline std::uint64_t wide_avx2(const std::uint8_t *wire, const std::uint32_t *low,
                                        const std::uint32_t *high, std::size_t values) {
    const __m256i swap = _mm256_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3, 12,
                                         13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const __m256i sign = _mm256_set1_epi32(static_cast<int>(kSign));
    __m256i even_sum = _mm256_setzero_si256(), odd_sum = even_sum, high_sum = even_sum;
    std::size_t i = 0;
    for (; i + 8 <= values; i += 8) {
        const auto load = [i](const std::uint32_t *from) INA_AVX2 {
            return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i));
        };
        const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(wire + 4 * i));
        const __m256i value = _mm256_xor_si256(_mm256_shuffle_epi8(raw, swap), sign);
        const __m256i weight = load(low);
        even_sum = _mm256_add_epi64(even_sum, _mm256_mul_epu32(value, weight));
        odd_sum = _mm256_add_epi64(
            odd_sum, _mm256_mul_epu32(_mm256_srli_epi64(value, 32), _mm256_srli_epi64(weight, 32)));
        high_sum = _mm256_add_epi32(high_sum, _mm256_mullo_epi32(value, load(high)));
    }
    const __m256i upper = _mm256_add_epi32(high_sum, _mm256_slli_epi64(high_sum, 32));
    // The upper halves alone: adding 32-bit lanes, the lower ones stay.
    even_sum = _mm256_add_epi32(even_sum, _mm256_blend_epi32(_mm256_setzero_si256(), upper, 0xaa));
    alignas(32) std::uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), _mm256_add_epi64(even_sum, odd_sum));
    std::uint64_t sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
    if (i < values) sum += wide_body(wire + 4 * i, low + i, high + i, values - i);
    return sum;
}

INA_AVX512 inline std::uint64_t wide_avx512(const std::uint8_t *wire, const std::uint32_t *low,
                                            const std::uint32_t *high, std::size_t values) {
    const __m512i swap =
        _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(kSign));
    __m512i even_sum = _mm512_setzero_si512(), odd_sum = even_sum, high_sum = even_sum;
    std::size_t i = 0;
    for (; i + 16 <= values; i += 16) {
        const __m512i raw = _mm512_loadu_si512(wire + 4 * i);
        const __m512i value = _mm512_xor_si512(_mm512_shuffle_epi8(raw, swap), sign);
        const __m512i weight = _mm512_loadu_si512(low + i);
        even_sum = _mm512_add_epi64(even_sum, _mm512_mul_epu32(value, weight));
        odd_sum = _mm512_add_epi64(
            odd_sum, _mm512_mul_epu32(_mm512_srli_epi64(value, 32), _mm512_srli_epi64(weight, 32)));
        high_sum =
            _mm512_add_epi32(high_sum, _mm512_mullo_epi32(value, _mm512_loadu_si512(high + i)));
    }
    const __m512i upper = _mm512_add_epi32(high_sum, _mm512_slli_epi64(high_sum, 32));
    even_sum = _mm512_mask_add_epi32(even_sum, 0xaaaa, even_sum, upper);
    alignas(64) std::uint64_t lanes[8];
    _mm512_store_si512(lanes, _mm512_add_epi64(even_sum, odd_sum));
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : lanes) sum += lane;
    if (i < values) sum += wide_body(wire + 4 * i, low + i, high + i, values - i);
    return sum;
}

#endif

#define INA_WEIGH_KERNELS(NAME, LABEL, ATTRIBUTE, WIDE)                                            \
    namespace NAME {                                                                               \
    ATTRIBUTE std::uint64_t wide(const std::uint8_t *wire, const std::uint32_t *low,               \
                                 const std::uint32_t *high, std::size_t values) {                  \
        return WIDE(wire, low, high, values);                                                      \
    }                                                                                              \
    ATTRIBUTE std::uint32_t used_bits(const std::uint8_t *values, std::size_t count) {             \
        return used_bits_body(values, count);                                                      \
    }                                                                                              \
    constexpr WeighKernels kWeighKernels{LABEL, wide, used_bits};                                  \
    }

INA_WEIGH_KERNELS(generic, "generic", , wide_body)
#if defined(INA_X86_KERNELS)
INA_WEIGH_KERNELS(avx2, "avx2", INA_AVX2, wide_avx2)
INA_WEIGH_KERNELS(avx512, "avx512", INA_AVX512, wide_avx512)
#elif defined(INA_NEON_KERNELS)
INA_WEIGH_KERNELS(neon, "neon", , wide_body)
#endif
constexpr const WeighKernels *kCompiled[] = INA_KERNEL_SETS(kWeighKernels);

}  // namespace

const std::vector<const WeighKernels *> &available_weigh_kernels() {
    static const std::vector<const WeighKernels *> found = runnable_sets<WeighKernels>(kCompiled);
    return found;
}

const WeighKernels &best_weigh_kernels() {
    static const WeighKernels &best = *available_weigh_kernels().back();
    return best;
}

}  // namespace ina::host
