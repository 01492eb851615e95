#include "host/core/packed.hpp"

#include <algorithm>
#include <cmath>

#include "host/core/digest.hpp"
#include "host/core/float_formats.hpp"
#include "host/core/half_vectors.hpp"
#include "host/core/kernel_sets.hpp"
#include "host/core/unaligned.hpp"

namespace ina::host {
namespace {

// The finaliser of a 32-bit hash in which each bit of the counter moves half of the others
// (constants: C. Wellons, "hash-prospector", lowbias32).
INA_ALWAYS_INLINE std::uint32_t random_bits(std::uint32_t key, std::uint32_t index) {
    std::uint32_t word = key + index * 0x9e3779b9u;
    word = (word ^ (word >> 16)) * 0x7feb352du;
    word = (word ^ (word >> 15)) * 0x846ca68bu;
    return word ^ (word >> 16);
}

// The bodies below are inlined into one function for each instruction set and vectorised there.

// As many of a column as lie in memory: its first value is `from` of the chunk's.
struct Column {
    std::size_t from;
    std::size_t count;
    std::uint32_t shift;
};

INA_ALWAYS_INLINE Column column_of(std::uint32_t index, std::size_t count, std::size_t words,
                                   std::uint32_t bits) {
    const std::size_t from = std::min(index * words, count);
    return {from, std::min(words, count - from), index * bits};
}

INA_ALWAYS_INLINE std::int32_t clamped(std::int32_t value, std::int32_t limit) {
    value = value > limit ? limit : value;
    return value < -limit ? -limit : value;
}

INA_ALWAYS_INLINE std::int32_t nearest(float scaled) {
    return static_cast<std::int32_t>(__builtin_rintf(scaled));
}

// floor(x + u) with u in steps of 2^-9, never 0 nor 1: below 2^14 no sum reaches the next integer
// by its own rounding.
INA_ALWAYS_INLINE std::int32_t stochastic(float scaled, std::uint32_t random) {
    const float u =
        static_cast<float>(static_cast<std::int32_t>(random >> 23)) * (1.0f / 512) + 1.0f / 1024;
    const float moved = scaled + u;
    const auto cut = static_cast<std::int32_t>(moved);
    return cut - (static_cast<float>(cut) > moved ? 1 : 0);
}

template <class Format, bool kIsFirst, bool kIsRandom>
INA_ALWAYS_INLINE void add_column(const std::uint8_t *tensor, const Column &column,
                                  const Packing &how, std::uint8_t *words) {
    for (std::size_t i = 0; i < column.count; ++i) {
        const float value = Format::to_float(load<typename Format::Bits>(tensor, i));
        const float scaled = value * how.scale;
        const auto index = static_cast<std::uint32_t>(column.from + i);
        const std::int32_t rounded =
            kIsRandom ? stochastic(scaled, random_bits(how.key, index)) : nearest(scaled);
        const auto integer = static_cast<std::uint32_t>(clamped(rounded, how.limit));
        const std::uint32_t before = kIsFirst ? 0 : load<std::uint32_t>(words, i);
        store(words, i, before + (integer << column.shift));
    }
}

template <class Format, bool kIsRandom>
INA_ALWAYS_INLINE void pack_body(const void *tensor, std::size_t count, const Packing &how,
                                 std::uint8_t *words) {
    const std::uint32_t columns = 32 / how.bits;
    const std::size_t all = (count + columns - 1) / columns;
    const auto *values = static_cast<const std::uint8_t *>(tensor);
    // The first has a value in each word.
    add_column<Format, true, kIsRandom>(values, column_of(0, count, all, how.bits), how, words);
    for (std::uint32_t i = 1; i < columns; ++i) {
        const Column column = column_of(i, count, all, how.bits);
        add_column<Format, false, kIsRandom>(values + column.from * sizeof(typename Format::Bits),
                                             column, how, words);
    }
    for (std::size_t i = 0; i < all; ++i)
        store(words, i, big_endian(load<std::uint32_t>(words, i)));
}

// A column's sum is what is left of the word above those below it, which are at least -2^(b-1):
// with as much added to each of them none borrows from the next.
template <class Format>
INA_ALWAYS_INLINE void unpack_body(const std::uint8_t *words, std::size_t count, std::uint32_t bits,
                                   Dequantization how, void *tensor) {
    const std::uint32_t columns = 32 / bits;
    const std::size_t all = (count + columns - 1) / columns;
    const float factor = 1.0f / static_cast<float>(how.divisor);
    const float inverse_scale = how.inverse_scale;
    std::uint32_t below = 0;
    for (std::uint32_t index = 0; index < columns; ++index) {
        const Column column = column_of(index, count, all, bits);
        const std::uint32_t up = 32 - bits - column.shift;
        const std::uint32_t down = 32 - bits;
        auto *const to =
            static_cast<std::uint8_t *>(tensor) + column.from * sizeof(typename Format::Bits);
        for (std::size_t i = 0; i < column.count; ++i) {
            const std::uint32_t word = big_endian(load<std::uint32_t>(words, i)) + below;
            const std::int32_t sum = static_cast<std::int32_t>(word << up) >> down;
            const float value = static_cast<float>(sum) * inverse_scale * factor;
            store(to, i, Format::from_float(value));
        }
        below += 1u << (column.shift + bits - 1);
    }
}

template <bool kIsRandom>
INA_ALWAYS_INLINE void pack_any(ValueType element, const void *tensor, std::size_t count,
                                const Packing &how, std::uint8_t *words) {
    if (element == ValueType::kFloat32) {
        pack_body<Float32, kIsRandom>(tensor, count, how, words);
    } else if (element == ValueType::kFloat16) {
        pack_body<Float16, kIsRandom>(tensor, count, how, words);
    } else {
        pack_body<Bfloat16, kIsRandom>(tensor, count, how, words);
    }
}

#define INA_PACKED_KERNELS(NAME, LABEL, ATTRIBUTE)                                                 \
    namespace NAME {                                                                               \
    ATTRIBUTE void pack(ValueType element, const void *tensor, std::size_t count,                  \
                        const Packing &how, std::uint8_t *words) {                                 \
        if (how.rounding == Rounding::kStochastic) {                                               \
            pack_any<true>(element, tensor, count, how, words);                                    \
        } else {                                                                                   \
            pack_any<false>(element, tensor, count, how, words);                                   \
        }                                                                                          \
    }                                                                                              \
    ATTRIBUTE void unpack(ValueType element, const std::uint8_t *words, std::size_t count,         \
                          std::uint32_t bits, Dequantization how, void *tensor) {                  \
        if (element == ValueType::kFloat32) {                                                      \
            unpack_body<Float32>(words, count, bits, how, tensor);                                 \
        } else if (element == ValueType::kFloat16) {                                               \
            unpack_body<Float16>(words, count, bits, how, tensor);                                 \
        } else {                                                                                   \
            unpack_body<Bfloat16>(words, count, bits, how, tensor);                                \
        }                                                                                          \
    }                                                                                              \
    constexpr PackedKernels kPackedKernels{LABEL, pack, unpack};                                   \
    }

INA_PACKED_KERNELS(generic, "generic", )
#if defined(INA_X86_KERNELS)
INA_PACKED_KERNELS(avx2, "avx2", INA_AVX2)
INA_PACKED_KERNELS(avx512, "avx512", INA_AVX512)
#elif defined(INA_NEON_KERNELS)
INA_PACKED_KERNELS(neon, "neon", )
#endif
constexpr const PackedKernels *kCompiled[] = INA_KERNEL_SETS(kPackedKernels);

}  // namespace

std::int32_t column_limit(std::uint32_t bits, int summands) {
    return static_cast<std::int32_t>(((std::int64_t{1} << (bits - 1)) - 1) / summands);
}

Packing packing_of(ValueType type, std::uint8_t exponent, int summands) {
    const std::uint32_t bits = 32 / values_per_word(type);
    const std::int32_t limit = column_limit(bits, summands);
    int scale_bits = 0;
    while ((2 << scale_bits) <= limit + 1) ++scale_bits;
    return {bits, limit, std::ldexp(1.0f, scale_bits - (exponent - wire::kExponentBias))};
}

std::uint32_t rounding_key(std::uint64_t tensor, std::uint64_t first_elem, std::uint32_t rank) {
    return static_cast<std::uint32_t>(mix(mix(tensor) ^ mix(~first_elem) ^ rank) >> 32);
}

const std::vector<const PackedKernels *> &available_packed_kernels() {
    static const std::vector<const PackedKernels *> found = runnable_sets<PackedKernels>(kCompiled);
    return found;
}

const PackedKernels &best_packed_kernels() {
    static const PackedKernels &best = *available_packed_kernels().back();
    return best;
}

}  // namespace ina::host
