// Block floating point: one block = the values of one packet.
//
// A block's exponent e satisfies 2^e > max |x|. All workers use the largest exponent E of the block
// (agreed in the packets) and the scale f = 2^(31 - s - E), where s is log2 n, rounded up, and one
// more for 256, 512 and 1024 workers, so n contributions never overflow int32. q = round half
// even(x f) goes over the wire big endian; the sum divided by f is the result. Every kernel exists
// for several instruction sets with bit-identical results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ina_wire.hpp"

namespace ina::host {

enum class ValueType : std::uint8_t {
    kInt32 = wire::kValueTypeInt32,
    kFloat32 = wire::kValueTypeFloat32,
    kFloat16 = wire::kValueTypeFloat16,
    kBfloat16 = wire::kValueTypeBfloat16,
    kBytes = wire::kValueTypeBytes,  // of any type, four in a word: moved, not summed
    // Two or four in a word (packed.hpp).
    kFloat32In16 = wire::kValueTypeFloat32In16,
    kFloat16In16 = wire::kValueTypeFloat16In16,
    kBfloat16In16 = wire::kValueTypeBfloat16In16,
    kFloat32In8 = wire::kValueTypeFloat32In8,
    kFloat16In8 = wire::kValueTypeFloat16In8,
    kBfloat16In8 = wire::kValueTypeBfloat16In8,
};

// The tensor's type is the lower two bits, the binary logarithm of how many are in a word the
// upper.
inline constexpr ValueType element_of(ValueType type) {
    return static_cast<ValueType>(static_cast<std::uint8_t>(type) & 3);
}
inline constexpr std::uint32_t values_per_word(ValueType type) {
    return 1u << (static_cast<std::uint8_t>(type) >> 2);
}
inline constexpr bool is_value_type(int type) { return type >= 0 && (type >> 2) < 3 && type != 4; }

inline constexpr bool is_float(ValueType type) {
    return element_of(type) != element_of(ValueType::kInt32);
}
inline constexpr std::size_t bytes_per_elem(ValueType type) {
    if (type == ValueType::kBytes) return 1;
    const ValueType element = element_of(type);
    return element == ValueType::kInt32 || element == ValueType::kFloat32 ? 4 : 2;
}

struct BlockScan {
    std::uint8_t exponent = 0;  // biased by 127 and clamped to e >= -95; 0: no finite value but 0
    bool non_finite = false;    // the block holds Inf or NaN
};

// Smallest exponent that the scan gives for a block that is not all zero: below it f would not be
// a finite float32. Blocks smaller than 2^-95 lose precision, never range.
inline constexpr std::uint8_t kMinBlockExponent = 127 - 95;

// The scale of a block with biased exponent `exponent` (at least kMinBlockExponent) summed over
// `workers`, a power of two in 2^-108 .. 2^126, and its exact inverse.
float block_scale(std::uint8_t exponent, int workers);
float inverse_block_scale(std::uint8_t exponent, int workers);

// How a sum becomes a result. SUM: divisor 1. AVG: divisor n.
struct Dequantization {
    float inverse_scale = 1.0f;  // 1/f; ignored for int32
    int divisor = 1;             // float: times (float32)(1/n); int32: truncating division
};

// One instruction set's kernels, of whole words: no type that is packed. Tensor pointers need no
// alignment; `wire` holds elems * 4 bytes.
struct Kernels {
    const char *name;
    // Largest finite magnitude's exponent and whether anything is not finite. Not for int32.
    BlockScan (*scan)(ValueType type, const void *tensor, std::size_t elems);
    // Quantises to big-endian int32. Values must be finite and below 2^E; int32 is only
    // byte-swapped.
    void (*quantize)(ValueType type, const void *tensor, std::size_t elems, float scale,
                     std::uint8_t *wire);
    void (*dequantize)(ValueType type, const std::uint8_t *wire, std::size_t elems,
                       Dequantization how, void *tensor);
};

// The fastest set that this processor runs; chosen once.
const Kernels &best_kernels();
// Every set that this processor runs, slowest first; for tests and benchmarks.
const std::vector<const Kernels *> &available_kernels();

// Asks for a scan's input to be brought into the second-level cache, `kScanAheadBytes` before it is
// read. Blocks are scanned in order but between other work, and each page's beginning has to be
// asked for by software. Reads nothing: memory behind the tensor need not exist.
inline constexpr std::size_t kScanAheadBytes = 2048;
inline void prefetch_scan(const void *block, std::size_t bytes) {
    constexpr std::size_t kCacheLineBytes = 64;
    const auto first = reinterpret_cast<std::uintptr_t>(block) + kScanAheadBytes;
    for (std::size_t i = 0; i < bytes; i += kCacheLineBytes) {
        __builtin_prefetch(reinterpret_cast<const void *>(first + i), 0, 2);
    }
}

// Sets every value to the type's quiet NaN.
void fill_nan(ValueType type, void *tensor, std::size_t elems);

}  // namespace ina::host
