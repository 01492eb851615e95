// The bytes around INA's header and values in a packet: what stands in front of the header, behind
// UDP's, and what follows the values. Plain UDP has none. A framing is a value of WorkerConfig's;
// WorkerCore puts it around what it sends and takes it off what comes, and who has to find the
// header in a packet (threads' socket filters, stations) is told how far in it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/core/worker_types.hpp"

namespace ina::host {

struct Framing {
    // A frame's first line has so many to spare.
    static constexpr std::size_t kMostPrefixBytes = 32;

    static constexpr std::size_t kMostSuffixBytes = 32;

    std::vector<std::uint8_t> prefix;
    std::vector<std::uint8_t> suffix = {};

    std::size_t prefix_bytes() const { return prefix.size(); }
    std::size_t bytes() const { return prefix.size() + suffix.size(); }

    // What is sent of header and values; they have room for the prefix in front of them, and for
    // the suffix behind.
    PacketView around(std::uint8_t *header, std::size_t inside_bytes) const {
        if (bytes() == 0) return {header, inside_bytes};
        std::uint8_t *const first = header - prefix.size();
        std::uint8_t *const last = header + inside_bytes;
        std::copy(prefix.begin(), prefix.end(), first);
        std::copy(suffix.begin(), suffix.end(), last);
        return {first, inside_bytes + bytes()};
    }
    // Header and values of what came. Of what is too short for what is around them: nothing.
    PacketView inside(const std::uint8_t *payload, std::size_t payload_bytes) const {
        if (payload_bytes < bytes()) return {payload, 0};
        return {payload + prefix.size(), payload_bytes - bytes()};
    }
};

}  // namespace ina::host
