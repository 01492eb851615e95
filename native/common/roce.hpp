// RoCEv2 around ina's packets where a UDP socket is all there is: BTH in front, the invariant CRC
// behind. Of what ICRC covers, IP's header and UDP's are in no datagram; they are those that ina's
// switches write (ina/p4/v1model/roce_headers.p4) and that a kernel writes for a socket that is not
// connected: identification 0, not to be cut.
//
// Sources: InfiniBand Architecture Specification, volume 1, sections 9.2 and 7.8.1, annex A17; as
// ina/protocol/bth.py and icrc.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/crc.hpp"
#include "common/peer.hpp"

namespace ina::roce {

constexpr std::uint16_t kUdpPort = 4791;
constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kIcrcBytes = 4;
constexpr std::uint16_t kPkey = 0xffff;
constexpr std::uint8_t kUcSendOnly = 0x24;
constexpr std::uint8_t kMigrated = 0x40;  // as NICs send it where there is one path
constexpr std::uint8_t kPadAndVersion = 0x3f;

constexpr std::uint8_t kRcSendOnly = 0x04;
constexpr std::uint8_t kAcknowledge = 0x11;
// The acknowledgement's own header (AETH) behind BTH: a syndrome, and the number of messages so
// far.
constexpr std::size_t kAethBytes = 4;
constexpr std::uint8_t kAckSyndrome = 0x1f;  // of as many as the receiver wants, without credits
constexpr std::uint8_t kSequenceSyndrome = 0x60;  // NAK: one before has not come
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kHeadersBytes = kIpv4Bytes + kUdpBytes + kBthBytes;

struct Bth {
    std::uint8_t opcode = kUcSendOnly;
    std::uint8_t flags = kMigrated;  // solicited event, migration, pad count, version
    std::uint16_t pkey = kPkey;
    std::uint32_t dest_qp = 0;  // 24 bits
    std::uint32_t psn = 0;      // 24 bits
};

inline void put_big_endian(std::uint8_t *at, std::uint32_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        at[i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
    }
}

inline std::uint32_t big_endian(const std::uint8_t *at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | at[i];
    return value;
}

inline void put_bth(std::uint8_t *at, const Bth &bth) {
    at[0] = bth.opcode;
    at[1] = bth.flags;
    put_big_endian(at + 2, bth.pkey, 2);
    put_big_endian(at + 4, bth.dest_qp & 0xffffff, 4);
    put_big_endian(at + 8, bth.psn & 0xffffff, 4);
}

inline Bth bth_at(const std::uint8_t *at) {
    return {at[0], at[1], static_cast<std::uint16_t>(big_endian(at + 2, 2)), big_endian(at + 5, 3),
            big_endian(at + 9, 3)};
}

// The ICRC of an IPv4 packet without options. `headers`: IPv4, UDP and BTH; `behind`: what follows
// them, without the ICRC. Low byte first on the wire.
inline std::uint32_t icrc_of(const std::uint8_t *headers, const std::uint8_t *behind,
                             std::size_t bytes) {
    constexpr std::size_t kOnes = 8;  // stand for InfiniBand's local header
    // What changes on the way: TOS, time to live, IP's checksum and UDP's, FECN and BECN.
    constexpr std::size_t kChanges[] = {1, 8, 10, 11, 26, 27, 32};
    std::array<std::uint8_t, kOnes + kHeadersBytes> covered;
    std::memset(covered.data(), 0xff, kOnes);
    std::memcpy(covered.data() + kOnes, headers, kHeadersBytes);
    for (const std::size_t at : kChanges) covered[kOnes + at] = 0xff;
    const std::uint32_t crc = crc32(kCrcStart, covered.data(), covered.size());
    return ~crc32(crc, behind, bytes);
}

// Of a packet from its IPv4 header to what stands before the ICRC.
inline std::uint32_t icrc_of_packet(const std::uint8_t *packet, std::size_t bytes) {
    return icrc_of(packet, packet + kHeadersBytes, bytes - kHeadersBytes);
}

// The ICRC of datagrams from one end to another. UDP ports are those of the frames, not of sockets.
class Icrc {
  public:
    Icrc(const Peer &from, const Peer &to) {
        std::uint8_t *const ip = headers_.data();
        ip[0] = 0x45;
        put_big_endian(ip + 4, 0x4000, 4);  // identification 0, don't fragment
        ip[9] = 17;                         // UDP
        put_big_endian(ip + 12, from.ipv4, 4);
        put_big_endian(ip + 16, to.ipv4, 4);
        put_big_endian(ip + kIpv4Bytes, from.udp_port, 2);
        put_big_endian(ip + kIpv4Bytes + 2, to.udp_port, 2);
    }

    // Of a datagram's payload without its ICRC: BTH and what follows.
    std::uint32_t of(const std::uint8_t *datagram, std::size_t bytes) const {
        auto headers = headers_;
        const auto udp_bytes = static_cast<std::uint32_t>(kUdpBytes + bytes + kIcrcBytes);
        put_big_endian(headers.data() + 2, kIpv4Bytes + udp_bytes, 2);
        put_big_endian(headers.data() + kIpv4Bytes + 4, udp_bytes, 2);
        std::memcpy(headers.data() + kIpv4Bytes + kUdpBytes, datagram, kBthBytes);
        return icrc_of(headers.data(), datagram + kBthBytes, bytes - kBthBytes);
    }

  private:
    std::array<std::uint8_t, kHeadersBytes> headers_{};
};

}  // namespace ina::roce
