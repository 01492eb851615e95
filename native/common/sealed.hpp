// Packets that say by a CRC-32 of all their bytes whether they are whole. The four bytes that hold
// it count as 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/crc.hpp"

namespace ina {

// `packet` has at least `offset` + 4 bytes, as in the next.
inline std::uint32_t crc_around(const std::uint8_t *packet, std::size_t bytes, std::size_t offset) {
    constexpr std::uint32_t kNothing = 0;
    std::uint32_t crc = crc32(kCrcStart, packet, offset);
    crc = crc32(crc, reinterpret_cast<const std::uint8_t *>(&kNothing), sizeof kNothing);
    const std::size_t behind = offset + sizeof kNothing;
    return ~crc32(crc, packet + behind, bytes - behind);
}

inline void seal(std::uint8_t *packet, std::size_t bytes, std::size_t offset) {
    const std::uint32_t crc = crc_around(packet, bytes, offset);
    std::memcpy(packet + offset, &crc, sizeof crc);
}

inline bool is_sealed(const std::uint8_t *packet, std::size_t bytes, std::size_t offset) {
    std::uint32_t said = 0;
    std::memcpy(&said, packet + offset, sizeof said);
    return said == crc_around(packet, bytes, offset);
}

}  // namespace ina
