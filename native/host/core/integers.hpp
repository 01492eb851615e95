// How values of int32 travel where sums are verified. A check holds for sums that do not wrap, so a
// chunk goes as it is if nobody's values can make its sums do so; else as two, of halves, whose
// sums cannot: the lower 16 bits without a sign, and the upper ones with it. Their sums, the upper
// ones moved back, are the chunk's modulo 2^32.
//
// Nobody knows of the others' values: a chunk is sent as it is first, and who holds one that is too
// large says so and sends zeros. The lane's later chunks of that tensor are halved from the start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/ina_wire.hpp"

namespace ina::host {

// What a packet's values are of int32, in the header's exponent. Where sums are not verified: all.
enum class IntegerPart : std::uint8_t { kAll = 0, kLower = 1, kUpper = 2 };

inline constexpr int kHalfBits = 16;

// Whether a sum of so many values stays within int32. `used_bits`: besides signs, of all of them.
inline bool never_wrap(std::uint32_t used_bits, std::uint32_t summands) {
    int spare_bits = 0;  // that the sum has more than a value
    while ((std::uint32_t{1} << spare_bits) < summands) ++spare_bits;
    return used_bits >> (31 - spare_bits) == 0;
}

// Leaves that half of each value; `wire`: as in a packet.
inline void take_half(std::uint8_t *wire, std::size_t count, IntegerPart part) {
    for (std::size_t i = 0; i < count; ++i, wire += wire::kValueBytes) {
        const auto value = static_cast<std::int32_t>(wire::load_be32(wire));
        const std::int32_t half = part == IntegerPart::kLower ? value & 0xffff : value >> kHalfBits;
        wire::store_be32(wire, static_cast<std::uint32_t>(half));
    }
}

// Makes of the sums of the lower halves those of the values. Both as in a packet.
inline void join_halves(std::uint8_t *lower, const std::uint8_t *upper, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * wire::kValueBytes;
        const std::uint32_t sum =
            wire::load_be32(lower + at) + (wire::load_be32(upper + at) << kHalfBits);
        wire::store_be32(lower + at, sum);
    }
}

}  // namespace ina::host
