// Two or four values in an int32 word, which the switch adds as it adds any other.
//
// A word is the sum of q_j 2^(b j), for columns j of b = 16 or 8 bits. Each q_j is at most
// t = (2^(b-1) - 1) / n in magnitude, n being the contributions in a sum, so a column's sum fits
// its column and a word's never wraps: the sums are unpacked from below, each borrow given back to
// the column above. The scale is 2^-E times the largest power of two that is at most t + 1; a value
// that it would round beyond t becomes t. So integers up to t are summed as they are.
//
// Column j holds the chunk's values from j ceil(count / columns) on. docs/protocol.md has the
// bounds. After THC (Li et al., NSDI 2024), whose switch looks levels up where this one adds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/core/collective.hpp"

namespace ina::host {

// The largest magnitude that a column may have; 0: there are too many contributions.
std::int32_t column_limit(std::uint32_t bits, int summands);

struct Packing {
    std::uint32_t bits;  // of a column: 16 or 8
    std::int32_t limit;  // t
    float scale;
    Rounding rounding = Rounding::kNearest;
    std::uint32_t key = 0;  // of the random bits, which depend on it and a value's index alone
};

// Of a chunk whose exponent is agreed, for the sum of so many; `type` is packed.
Packing packing_of(ValueType type, std::uint8_t exponent, int summands);

// The key of a chunk's random bits: of what all runs with the same tensors have alike, and no
// worker like another. Never of sequence numbers or time, so that what is sent again, or over
// another mapping, is the same.
std::uint32_t rounding_key(std::uint64_t tensor, std::uint64_t first_elem, std::uint32_t rank);

// One instruction set's kernels; all give the same bits. Tensor pointers need no alignment.
struct PackedKernels {
    const char *name;
    // Writes ceil(count / columns) words, big-endian. Values must be finite and below 2^E.
    void (*pack)(ValueType element, const void *tensor, std::size_t count, const Packing &how,
                 std::uint8_t *words);
    void (*unpack)(ValueType element, const std::uint8_t *words, std::size_t count,
                   std::uint32_t bits, Dequantization how, void *tensor);
};

const PackedKernels &best_packed_kernels();
// Every set that this processor runs, slowest first.
const std::vector<const PackedKernels *> &available_packed_kernels();

}  // namespace ina::host
