#include "host/core/quantize.hpp"

#include <algorithm>
#include <type_traits>

#include "host/core/float_formats.hpp"
#include "host/core/half_vectors.hpp"
#include "host/core/kernel_sets.hpp"
#include "host/core/unaligned.hpp"

namespace ina::host {
namespace {

// 2^e is the next power of two above x: one more than x's exponent field. Subnormals are clamped.
std::uint8_t biased_exponent(float magnitude) {
    static_assert(wire::kExponentBias == 127, "a float32's own bias");
    const std::uint32_t bits = bits_of_float(magnitude);
    if (bits == 0) return 0;
    return static_cast<std::uint8_t>(std::max<std::uint32_t>((bits >> 23) + 1, kMinBlockExponent));
}

// The bodies below are inlined into one function for each instruction set and vectorised there.
// They hold nothing that rounds differently between sets: no a*b+c, no reassociated sum.

// The largest magnitude of all values, Inf and NaN included. Magnitudes order like integers, and
// signed ones at that: their top bit is clear, and every instruction set has a signed maximum.
template <class Format>
INA_ALWAYS_INLINE typename Format::Bits largest_magnitude(const void *tensor, std::size_t elems) {
    using Signed = std::make_signed_t<typename Format::Bits>;
    Signed largest = 0;
    for (std::size_t i = 0; i < elems; ++i) {
        const auto bits = load<typename Format::Bits>(tensor, i);
        const auto magnitude = static_cast<Signed>(bits & Format::kMagnitude);
        largest = magnitude > largest ? magnitude : largest;
    }
    return static_cast<typename Format::Bits>(largest);
}

// The rare case of a block with Inf or NaN; need not be fast.
template <class Format>
BlockScan scan_non_finite(const void *tensor, std::size_t elems) {
    using Bits = typename Format::Bits;
    Bits largest = 0;
    for (std::size_t i = 0; i < elems; ++i) {
        const Bits magnitude = load<Bits>(tensor, i) & Format::kMagnitude;
        if (magnitude < Format::kInfinity) largest = std::max(largest, magnitude);
    }
    return {biased_exponent(Format::to_float(largest)), true};
}

template <class Format>
INA_ALWAYS_INLINE BlockScan scan_body(const void *tensor, std::size_t elems) {
    const auto largest = largest_magnitude<Format>(tensor, elems);
    if (largest >= Format::kInfinity) return scan_non_finite<Format>(tensor, elems);
    return {biased_exponent(Format::to_float(largest)), false};
}

template <class Format>
INA_ALWAYS_INLINE void quantize_body(const void *tensor, std::size_t elems, float scale,
                                     std::uint8_t *wire) {
    for (std::size_t i = 0; i < elems; ++i) {
        const float value = Format::to_float(load<typename Format::Bits>(tensor, i));
        const auto integer = static_cast<std::int32_t>(__builtin_rintf(value * scale));
        store(wire, i, big_endian(static_cast<std::uint32_t>(integer)));
    }
}

INA_ALWAYS_INLINE void swap_body(const void *from, std::size_t elems, void *to) {
    for (std::size_t i = 0; i < elems; ++i) store(to, i, big_endian(load<std::uint32_t>(from, i)));
}

template <class Format>
INA_ALWAYS_INLINE void dequantize_body(const std::uint8_t *wire, std::size_t elems,
                                       float inverse_scale, float one_over_divisor, void *tensor) {
    for (std::size_t i = 0; i < elems; ++i) {
        const auto sum = static_cast<std::int32_t>(big_endian(load<std::uint32_t>(wire, i)));
        const float value = static_cast<float>(sum) * inverse_scale * one_over_divisor;
        store(tensor, i, Format::from_float(value));
    }
}

INA_ALWAYS_INLINE void divide_body(const std::uint8_t *wire, std::size_t elems, int divisor,
                                   void *tensor) {
    // A quotient of an int32 and n <= 32 that is no integer is at least 1/32 away from one, so
    // float64 division truncates as integer division does, and vectorises.
    const double by = divisor;
    for (std::size_t i = 0; i < elems; ++i) {
        const auto sum = static_cast<std::int32_t>(big_endian(load<std::uint32_t>(wire, i)));
        store(tensor, i, static_cast<std::int32_t>(static_cast<double>(sum) / by));
    }
}

INA_ALWAYS_INLINE BlockScan scan_any(ValueType type, const void *tensor, std::size_t elems) {
    switch (type) {
        case ValueType::kFloat32: return scan_body<Float32>(tensor, elems);
        case ValueType::kFloat16: return scan_body<Float16>(tensor, elems);
        case ValueType::kBfloat16: return scan_body<Bfloat16>(tensor, elems);
        default: return {};  // int32
    }
}

INA_ALWAYS_INLINE void quantize_any(ValueType type, const void *tensor, std::size_t elems,
                                    float scale, std::uint8_t *wire) {
    switch (type) {
        case ValueType::kFloat32: return quantize_body<Float32>(tensor, elems, scale, wire);
        case ValueType::kFloat16: return quantize_body<Float16>(tensor, elems, scale, wire);
        case ValueType::kBfloat16: return quantize_body<Bfloat16>(tensor, elems, scale, wire);
        default: return swap_body(tensor, elems, wire);  // int32
    }
}

INA_ALWAYS_INLINE void dequantize_any(ValueType type, const std::uint8_t *wire, std::size_t elems,
                                      Dequantization how, void *tensor) {
    const float factor = 1.0f / static_cast<float>(how.divisor);
    switch (type) {
        case ValueType::kFloat32:
            return dequantize_body<Float32>(wire, elems, how.inverse_scale, factor, tensor);
        case ValueType::kFloat16:
            return dequantize_body<Float16>(wire, elems, how.inverse_scale, factor, tensor);
        case ValueType::kBfloat16:
            return dequantize_body<Bfloat16>(wire, elems, how.inverse_scale, factor, tensor);
        default:  // int32
            if (how.divisor == 1) return swap_body(wire, elems, tensor);
            return divide_body(wire, elems, how.divisor, tensor);
    }
}

// One instruction set's kernels. float16 goes by its conversion instructions where it has any
// (half_vectors.hpp), and by the body above for the values that fill no vector.
#define INA_KERNELS(NAME, LABEL, ATTRIBUTE)                                                        \
    namespace NAME {                                                                               \
    ATTRIBUTE BlockScan scan(ValueType type, const void *tensor, std::size_t elems) {              \
        return scan_any(type, tensor, elems);                                                      \
    }                                                                                              \
    ATTRIBUTE void quantize(ValueType type, const void *tensor, std::size_t elems, float scale,    \
                            std::uint8_t *wire) {                                                  \
        const auto *from = static_cast<const std::uint8_t *>(tensor);                              \
        std::size_t done = 0;                                                                      \
        if (type == ValueType::kFloat16) {                                                         \
            done = ina::host::NAME::quantize_halves(from, elems, scale, wire);                     \
            if (done == elems) return;                                                             \
        }                                                                                          \
        quantize_any(type, from + done * 2, elems - done, scale, wire + done * wire::kValueBytes); \
    }                                                                                              \
    ATTRIBUTE void dequantize(ValueType type, const std::uint8_t *wire, std::size_t elems,         \
                              Dequantization how, void *tensor) {                                  \
        auto *to = static_cast<std::uint8_t *>(tensor);                                            \
        std::size_t done = 0;                                                                      \
        if (type == ValueType::kFloat16) {                                                         \
            done = ina::host::NAME::dequantize_halves(wire, elems, how.inverse_scale,              \
                                                      1.0f / static_cast<float>(how.divisor), to); \
            if (done == elems) return;                                                             \
        }                                                                                          \
        dequantize_any(type, wire + done * wire::kValueBytes, elems - done, how, to + done * 2);   \
    }                                                                                              \
    constexpr Kernels kKernels{LABEL, scan, quantize, dequantize};                                 \
    }

INA_KERNELS(generic, "generic", )
#if defined(INA_X86_KERNELS)
INA_KERNELS(avx2, "avx2", INA_AVX2)
INA_KERNELS(avx512, "avx512", INA_AVX512)
#elif defined(INA_NEON_KERNELS)
// NEON is part of the baseline: the bodies are the generic set's.
INA_KERNELS(neon, "neon", )
#endif
constexpr const Kernels *kCompiled[] = INA_KERNEL_SETS(kKernels);

float power_of_two(int exponent) {  // -126 .. 127
    return float_of_bits(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// Of a sum: n values of at most 2^(31 - headroom) fit an int32. Below 2^24 a float32 next to a
// power of two is rounded up to it, and a power of two of those would be 2^31.
int headroom_bits(int workers) {
    constexpr int kFirstRoundedUp = 256;
    const int fewer_than = workers < kFirstRoundedUp ? workers : workers + 1;
    int bits = 0;
    while ((1 << bits) < fewer_than) ++bits;
    return bits;
}

int scale_exponent(std::uint8_t exponent, int workers) {
    return 31 - headroom_bits(workers) - (exponent - wire::kExponentBias);
}

template <class Bits>
void fill(void *tensor, std::size_t elems, Bits bits) {
    for (std::size_t i = 0; i < elems; ++i) store(tensor, i, bits);
}

}  // namespace

float block_scale(std::uint8_t exponent, int workers) {
    return power_of_two(scale_exponent(exponent, workers));
}

float inverse_block_scale(std::uint8_t exponent, int workers) {
    return power_of_two(-scale_exponent(exponent, workers));
}

const std::vector<const Kernels *> &available_kernels() {
    static const std::vector<const Kernels *> found = runnable_sets<Kernels>(kCompiled);
    return found;
}

const Kernels &best_kernels() {
    static const Kernels &best = *available_kernels().back();
    return best;
}

void fill_nan(ValueType type, void *tensor, std::size_t elems) {
    switch (element_of(type)) {
        case ValueType::kFloat32: return fill(tensor, elems, Float32::kNan);
        case ValueType::kFloat16: return fill(tensor, elems, Float16::kNan);
        case ValueType::kBfloat16: return fill(tensor, elems, Bfloat16::kNan);
        default: return;  // int32 has none
    }
}

}  // namespace ina::host
