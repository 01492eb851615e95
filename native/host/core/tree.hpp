// The trees of switches that sum a job's lanes, as one worker sees them. Each has lanes in a row,
// and slots of its own for them at every node; they share nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ina_wire.hpp"
#include "common/peer.hpp"

namespace ina::host {

struct Tree {
    std::uint16_t job = 0;              // the header's, in packets of this tree
    int worker = 0;                     // this worker's index among the first node's children
    std::uint32_t path = 0;             // the way down to it from the root
    std::uint32_t expected_bitmap = 0;  // contributors that a whole result names: of the root
    std::uint32_t first_lane = 0;
    std::uint32_t lanes = 0;
    Peer node;  // that this worker is a child of; not known: where the channel leads to anyway
    // By rank, the rank's path in its upper kOwnerBits. Empty: the tree has no shapes but SUM.
    std::vector<std::uint16_t> owners = {};
};

// A worker's lanes in equal parts: lane i belongs to thread i / (lanes / threads). Both numbers are
// powers of two.
struct LaneParts {
    std::uint32_t lanes;
    std::uint32_t threads;
    std::uint32_t prefix_bytes = 0;  // in packets, in front of the header that says the lane

    bool operator!=(const LaneParts &other) const {
        return lanes != other.lanes || threads != other.threads;
    }
};

// A node that trees begin at, and their numbers: a packet that comes from there is of one of them.
struct Way {
    Peer node;
    std::vector<std::uint16_t> jobs;

    bool operator==(const Way &other) const { return node == other.node && jobs == other.jobs; }
};

inline constexpr std::size_t kMaxTrees = 16;
// From a path of kOwnerBits to the same in `path`, or in its upper half in rounds of a shape.
inline constexpr int kOwnerShift = wire::kPathBits - wire::kOwnerBits;

// Whether a packet is this worker's, by its path; that may name the owner of a chunk, too.
inline bool is_of(const Tree &tree, std::uint32_t path) {
    const int said = tree.owners.empty() ? 0 : wire::kOwnerBits;
    return path >> said == tree.path >> said;
}

// The header's slot of a sequence number on one of the tree's lanes; `window`: W.
inline std::uint16_t slot_of(const Tree &tree, std::uint32_t seq, std::uint32_t window) {
    const std::uint32_t lane = (seq & (window - 1)) - tree.first_lane;
    return static_cast<std::uint16_t>(lane + ((seq & window) != 0 ? tree.lanes : 0));
}

}  // namespace ina::host
