// The bytes around INA's header and values in a packet: what stands in front of the header, behind
// UDP's. Plain UDP has none. A framing is a value of WorkerConfig's; WorkerCore puts it around what
// it sends and takes it off what comes, and who has to find the header in a packet (threads' socket
// filters, stations) is told how far in it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/core/worker_types.hpp"

namespace ina::host {

struct Framing {
    static constexpr std::size_t kMostPrefixBytes =
        32;  // a frame's first line has so many to spare

    // Changes in a packet's prefix what is not the same in all; `inside`: its header and values.
    using Seal = void (*)(std::uint8_t *prefix, const PacketView &inside);

    std::vector<std::uint8_t> prefix;
    Seal seal = nullptr;  // null: all packets' are the same

    std::size_t prefix_bytes() const { return prefix.size(); }

    // What is sent of header and values; they have room for the prefix in front of them.
    PacketView around(std::uint8_t *header, std::size_t bytes) const {
        if (prefix.empty()) return {header, bytes};
        std::uint8_t *const first = header - prefix.size();
        std::memcpy(first, prefix.data(), prefix.size());
        if (seal != nullptr) seal(first, {header, bytes});
        return {first, bytes + prefix.size()};
    }
    // Header and values of what came. Of what is too short for the prefix: nothing.
    PacketView inside(const std::uint8_t *payload, std::size_t bytes) const {
        const std::size_t in_front = bytes < prefix.size() ? bytes : prefix.size();
        return {payload + in_front, bytes - in_front};
    }
};

}  // namespace ina::host
