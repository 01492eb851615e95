// Ethernet/IPv4/UDP around a datagram: put on when it arrives on a UDP port, taken off when it
// leaves through one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/peer.hpp"

namespace ina::sw {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kUdpBytes = 8;
constexpr size_t kFrameHeaderBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
constexpr size_t kMaxPayloadBytes = 65507;  // of one UDP datagram over IPv4

inline uint16_t load_be16(const uint8_t *p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t load_be32(const uint8_t *p) {
    return static_cast<uint32_t>(load_be16(p)) << 16 | load_be16(p + 2);
}
inline void store_be16(uint8_t *p, uint16_t value) {
    p[0] = static_cast<uint8_t>(value >> 8);
    p[1] = static_cast<uint8_t>(value);
}
inline void store_be32(uint8_t *p, uint32_t value) {
    store_be16(p, static_cast<uint16_t>(value >> 16));
    store_be16(p + 2, static_cast<uint16_t>(value));
}

// What a frame says about the UDP datagram inside it; payload points into the frame.
struct Datagram {
    Peer source;
    Peer destination;
    uint8_t tos = 0;
    const uint8_t *payload = nullptr;
    size_t payload_bytes = 0;
    // The rest of the payload, where a frame comes in two parts.
    const uint8_t *tail = nullptr;
    size_t tail_bytes = 0;
    // What is behind the tail, where it comes in three.
    const uint8_t *trailer = nullptr;
    size_t trailer_bytes = 0;
};

// One's complement sum (RFC 1071), continued from `sum`; fold_checksum() ends it.
uint32_t add_checksum(uint32_t sum, const uint8_t *data, size_t bytes);
uint16_t fold_checksum(uint32_t sum);

// Writes kFrameHeaderBytes before a payload of payload_bytes. MAC addresses are locally
// administered, 02:00 and the IPv4 address; DF is set; TTL 64; UDP checksum 0 (none), as RFC 768
// allows over IPv4: the kernel has already checked the datagram's.
void write_frame_header(uint8_t *frame, Peer source, Peer destination, uint8_t tos,
                        size_t payload_bytes);

// False for anything but one whole, unfragmented IPv4/UDP datagram. Never reads past frame +
// length. The frame goes on with tail_bytes at tail, which are not looked at; headers lie before.
bool parse_udp_frame(const uint8_t *frame, size_t length, Datagram *datagram,
                     const uint8_t *tail = nullptr, size_t tail_bytes = 0);

// Whether a frame to the aggregation (IPv4/UDP to wire::kUdpPort) has a UDP checksum and it is
// wrong. Other frames are never wrong here: a switch forwards them unread, their receivers check
// them.
bool has_wrong_checksum(const uint8_t *frame, size_t length);

}  // namespace ina::sw
