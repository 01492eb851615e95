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

#include "common/crc32.h"
#include "common/peer.hpp"

namespace ina::roce {

constexpr std::uint16_t kUdpPort = 4791;
constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kIcrcBytes = 4;
constexpr std::uint16_t kPkey = 0xffff;
constexpr std::uint8_t kUcSendOnly = 0x24;
constexpr std::uint8_t kMigrated = 0x40;  // as NICs send it where there is one path
constexpr std::uint8_t kPadAndVersion = 0x3f;

inline std::uint32_t crc32(std::uint32_t crc, const std::uint8_t *data, std::size_t size) {
    static const auto by = ina_has_fast_crc32() ? ina_crc32_fast : ina_crc32_plain;
    return by(crc, data, size);
}

constexpr std::uint8_t kRcSendOnly = 0x04;
constexpr std::uint8_t kAcknowledge = 0x11;
// The acknowledgement's own header (AETH) behind BTH: a syndrome, and the number of messages so
// far.
constexpr std::size_t kAethBytes = 4;
constexpr std::uint8_t kAckSyndrome = 0x1f;  // of as many as the receiver wants, without credits
constexpr std::uint8_t kSequenceSyndrome = 0x60;  // NAK: one before has not come
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kUdpBytes = 8;

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

// The ICRC of datagrams from one end to another. UDP ports are those of the frames, not of sockets.
class Icrc {
  public:
    Icrc(const Peer &from, const Peer &to) {
        std::uint8_t *const at = ones_and_headers_.data();
        std::memset(at, 0xff, ones_and_headers_.size());
        at[kIp] = 0x45;
        put_big_endian(at + kIp + 4, 0x4000, 4);  // identification 0, don't fragment
        at[kIp + 8] = 0xff;                       // time to live
        at[kIp + 9] = 17;                         // UDP
        put_big_endian(at + kIp + 12, from.ipv4, 4);
        put_big_endian(at + kIp + 16, to.ipv4, 4);
        put_big_endian(at + kUdp, from.udp_port, 2);
        put_big_endian(at + kUdp + 2, to.udp_port, 2);
    }

    // Of a datagram's payload without its ICRC: BTH and what follows. Low byte first on the wire.
    std::uint32_t of(const std::uint8_t *datagram, std::size_t bytes) const {
        auto headers = ones_and_headers_;
        std::uint8_t *const at = headers.data();
        const auto udp_bytes = static_cast<std::uint32_t>(8 + bytes + kIcrcBytes);
        put_big_endian(at + kIp + 2, 20 + udp_bytes, 2);
        put_big_endian(at + kUdp + 4, udp_bytes, 2);
        std::memcpy(at + kBth, datagram, kBthBytes);
        at[kBth + 4] = 0xff;
        const std::uint32_t crc = crc32(0xffffffff, at, headers.size());
        return ~crc32(crc, datagram + kBthBytes, bytes - kBthBytes);
    }

  private:
    static constexpr std::size_t kIp = 8;  // behind what stands for InfiniBand's local header
    static constexpr std::size_t kUdp = kIp + 20;
    static constexpr std::size_t kBth = kUdp + 8;
    std::array<std::uint8_t, kBth + kBthBytes> ones_and_headers_;
};

// The ICRC of an IPv4 packet without options, from its header to what stands before the ICRC.
inline std::uint32_t icrc_of_packet(const std::uint8_t *packet, std::size_t bytes) {
    constexpr std::size_t kOnes = 8;
    constexpr std::size_t kHeaders = kIpv4Bytes + kUdpBytes + kBthBytes;
    std::array<std::uint8_t, kOnes + kHeaders> covered;
    covered.fill(0xff);
    std::memcpy(covered.data() + kOnes, packet, kHeaders);
    for (const std::size_t masked : {1, 8, 10, 11, 26, 27, 32}) covered[kOnes + masked] = 0xff;
    const std::uint32_t crc = crc32(0xffffffff, covered.data(), covered.size());
    return ~crc32(crc, packet + kHeaders, bytes - kHeaders);
}

}  // namespace ina::roce
