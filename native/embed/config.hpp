// What all services of a group of embeddings agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "embed/optimizer.hpp"
#include "embed/placement.hpp"

namespace ina::embed {

inline constexpr std::uint16_t kMaxHosts = 64;  // bits of the mask of who is waited for

struct GroupConfig {
    std::uint64_t key = 0;
    std::uint16_t host = 0;  // this one
    std::uint16_t hosts = 1;
    // Hosts below it ask, and end steps; those from it on have rows, and serve. 0: all ask.
    std::uint16_t askers = 0;
    std::vector<TableSpec> tables;
    Optimizer optimizer;
    std::uint16_t asking() const { return askers == 0 ? hosts : askers; }
    std::size_t part_bytes = 1400;  // of a message, in a packet behind its header; of 4 a multiple
};

// Throws std::invalid_argument: a number out of range.
inline std::vector<Placement> placements_of(const GroupConfig &config) {
    if (config.hosts > kMaxHosts) throw std::invalid_argument("at most 64 hosts");
    if (config.askers > config.hosts) throw std::invalid_argument("askers must be hosts");
    if (config.host >= config.hosts) throw std::invalid_argument("host must be below hosts");
    if (config.part_bytes < 256 || config.part_bytes > 65'000 || config.part_bytes % 4 != 0) {
        throw std::invalid_argument("part_bytes must be 256 to 65000, a multiple of 4");
    }
    std::vector<Placement> placements;
    for (const TableSpec &spec : config.tables) placements.emplace_back(spec, config.hosts);
    return placements;
}

}  // namespace ina::embed
