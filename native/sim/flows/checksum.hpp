// The checksum of TCP and of UDP, over IPv4.
#pragma once

#include <cstdint>

#include "switch/frame.hpp"

namespace ina::sim {

// Of the pseudo-header and of the first `bytes` of the segment or datagram behind an IPv4 header
// without options; the rest of it, up to the header's length, is zeros. With the checksum in its
// place as 0 this is the checksum, with it as it came this is 0 if it is right.
inline std::uint16_t transport_checksum(const std::uint8_t *ip, std::size_t bytes) {
    const std::size_t length = sw::load_be16(ip + 2) - sw::kIpv4Bytes;
    const std::uint8_t rest[4] = {0, ip[9], static_cast<std::uint8_t>(length >> 8),
                                  static_cast<std::uint8_t>(length)};
    const std::uint32_t addresses = sw::add_checksum(0, ip + 12, 8);
    const std::uint32_t pseudo = sw::add_checksum(addresses, rest, sizeof rest);
    return sw::fold_checksum(sw::add_checksum(pseudo, ip + sw::kIpv4Bytes, bytes));
}

}  // namespace ina::sim
