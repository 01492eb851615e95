// What an engine's lanes are worked on by: a thread, or the events of a virtual host. And what it
// works on, which changes whole while the job changes to another mapping.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ina_wire.hpp"
#include "host/engine/mapping.hpp"

namespace ina::host {

using Mappings = std::vector<std::shared_ptr<Mapping>>;

struct Layout {
    std::uint64_t version = 0;
    Mappings mappings;  // one, or the older and the newer
    std::vector<Way> ways;
    LaneParts parts{};  // by which packets come to threads
    // The first operation of the newer mapping; 0: not known, or there is none.
    std::uint64_t first_of_new = 0;
    bool is_cut = false;  // its operations from there on are the newer mapping's

    Mapping &current() const { return is_cut ? *mappings.back() : *mappings.front(); }
};

// A share, as those see it who work on it.
struct Work {
    Mapping *mapping;
    Share *share;
    std::uint32_t bit;  // its number among an operation's bits
};

struct Station {
    static constexpr std::size_t kAll = SIZE_MAX;  // as its number: all shares are its own

    bool owns(std::size_t i) const {
        return std::binary_search(own.begin(), own.end(), static_cast<std::uint32_t>(i));
    }
    // In `work`, the share that what came is for. What is no packet of this format goes to a share
    // of its own, to be counted; and what is of no mapping, to one of the older.
    std::size_t index_of(const std::uint8_t *payload, std::size_t bytes) const;
    void take(Layout taken);

    std::size_t number = 0;          // of the thread
    Layout layout;                   // keeps the mappings alive
    std::vector<Work> work;          // all shares, the older mapping's first
    std::vector<std::uint32_t> own;  // in `work`, those it owns
};

inline std::size_t Station::index_of(const std::uint8_t *payload, std::size_t bytes) const {
    const Mapping &older = *layout.mappings.front();
    const PacketView inside = older.framing.inside(payload, bytes);
    if (inside.bytes < wire::kHeaderBytes) return own.empty() ? 0 : own.front();
    const Mapping &newer = *layout.mappings.back();
    const std::uint32_t seq = wire::load_be32(inside.data + wire::kSeqOffset);
    const std::uint16_t epoch = wire::load_be16(inside.data + wire::kEpochOffset);
    const bool is_newer = &newer != &older && epoch == static_cast<std::uint16_t>(newer.epoch);
    const Mapping &mapping = is_newer ? newer : older;
    const std::size_t share = mapping.finder.of(seq & (mapping.window - 1));
    return is_newer ? share + older.shares.size() : share;
}

}  // namespace ina::host
