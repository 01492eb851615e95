// What all ranks do together with a tensor: one value, the same on each of them, from the caller
// down to the digest on the wire (digest.hpp), by which ranks that differ find out. As
// ina/protocol/collective.py has it.
#pragma once

#include <cstdint>

#include "host/core/quantize.hpp"
#include "host/recovery/flows.hpp"

namespace ina::host {

enum class CollectiveKind : std::uint8_t {
    kAllReduce,
    kReduce,         // the root gets the sum
    kReduceScatter,  // each rank gets its part of the sum
    kAllGather,      // each rank has a part, all get all of them
    kBroadcast,      // the root has it, all get it
    kBarrier,        // nobody has or gets anything
};
inline constexpr int kCollectiveKinds = 6;

// Who gives a round's values, and who gets those of its result, as ina/protocol/spec.py says.
enum class Shape : std::uint8_t {
    kSum = wire::kShapeSum,
    kScatter = wire::kShapeScatter,
    kGather = wire::kShapeGather,
};

enum class Reduction : std::uint8_t { kSum, kAverage };

// How values become integers of few bits (packed.hpp); those of whole words are rounded to the
// nearest.
enum class Rounding : std::uint8_t {
    kNearest,     // half even
    kStochastic,  // up as often as the value is near the upper integer
};

// What gathers bring comes down to most ranks, all else goes up from most. So while both wait, each
// has half of the window: else the one would have all of it, and links would be busy in one
// direction at a time.
inline constexpr std::uint8_t flow_of(Shape shape) { return shape == Shape::kGather ? 1 : 0; }
static_assert(kFlows == 2);

struct Collective {
    ValueType type = ValueType::kFloat32;
    std::uint64_t elems = 0;  // of kReduceScatter and kAllGather: of each rank's part
    Reduction op = Reduction::kSum;
    CollectiveKind kind = CollectiveKind::kAllReduce;
    std::uint16_t root = 0;  // 0 of kinds without one
    Rounding rounding = Rounding::kNearest;

    // What its rounds are where the network knows shapes; else all are sums.
    Shape shape() const {
        switch (kind) {
            case CollectiveKind::kReduce:
            case CollectiveKind::kReduceScatter: return Shape::kScatter;
            case CollectiveKind::kAllGather:
            case CollectiveKind::kBroadcast: return Shape::kGather;
            default: return Shape::kSum;
        }
    }
    // Each rank owns a part; else all of it is the root's, or nobody's.
    bool has_parts() const {
        return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllGather;
    }
    // It is moved, not summed: bytes.
    bool is_moved() const { return shape() == Shape::kGather; }
    bool is_empty() const { return elems == 0 && kind != CollectiveKind::kBarrier; }

    // Of two that differ in more than their elements, not the same; for the digest.
    std::uint64_t word() const {
        return static_cast<std::uint64_t>(rounding) << 32 | static_cast<std::uint64_t>(root) << 16 |
               static_cast<std::uint64_t>(kind) << 8 | static_cast<std::uint64_t>(type) << 1 |
               static_cast<std::uint64_t>(op);
    }
};

}  // namespace ina::host
