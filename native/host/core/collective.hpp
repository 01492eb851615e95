// What all ranks do together with a tensor: one value, the same on each of them, from the caller
// down to the digest on the wire (digest.hpp), by which ranks that differ find out. As
// ina/protocol/collective.py has it.
#pragma once

#include <cstdint>

#include "host/core/quantize.hpp"

namespace ina::host {

enum class CollectiveKind : std::uint8_t { kAllReduce, kReduce };
inline constexpr int kCollectiveKinds = 2;

enum class Reduction : std::uint8_t { kSum, kAverage };

// How values become integers of few bits (packed.hpp); those of whole words are rounded to the
// nearest.
enum class Rounding : std::uint8_t {
    kNearest,     // half even
    kStochastic,  // up as often as the value is near the upper integer
};

struct Collective {
    ValueType type = ValueType::kFloat32;
    std::uint64_t elems = 0;
    Reduction op = Reduction::kSum;
    CollectiveKind kind = CollectiveKind::kAllReduce;
    std::uint16_t root = 0;  // the rank that alone gets the result; 0 of kinds without one
    Rounding rounding = Rounding::kNearest;

    // Whether this rank has values to give, and whether it gets those of the result. All take part
    // in every round: who has none to give sends a header alone, and who gets none goes on once it
    // has a result, to which its lanes are clocked as the others' are, with values or without.
    bool contributes(int /*rank*/) const { return true; }
    bool gets(int rank) const { return kind == CollectiveKind::kAllReduce || rank == root; }

    // Of two that differ in more than their elements, not the same; for the digest.
    std::uint64_t word() const {
        return static_cast<std::uint64_t>(rounding) << 32 | static_cast<std::uint64_t>(root) << 16 |
               static_cast<std::uint64_t>(kind) << 8 | static_cast<std::uint64_t>(type) << 1 |
               static_cast<std::uint64_t>(op);
    }
};

}  // namespace ina::host
