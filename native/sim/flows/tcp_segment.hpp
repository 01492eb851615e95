// TCP segments as Ethernet frames (RFC 9293), with the option for selective acknowledgements
// (RFC 2018). Payloads are zeros: nobody reads them.
#pragma once

#include <cstdint>

#include "sim/frame.hpp"
#include "switch/frame.hpp"

namespace ina::sim {

inline constexpr std::size_t kTcpBytes = 20;  // a header without options
// What every segment with data has before it.
inline constexpr std::size_t kTcpFrameHeaderBytes = sw::kEthernetBytes + sw::kIpv4Bytes + kTcpBytes;

enum TcpFlag : std::uint8_t { kPsh = 0x08, kAck = 0x10, kEce = 0x40, kCwr = 0x80 };

// Of the IP header's ECN field (RFC 3168).
inline constexpr std::uint8_t kEct0 = 2;
inline constexpr std::uint8_t kCe = 3;

struct TcpSegment {
    static constexpr std::uint32_t kMostSacks = 4;  // as many as fit where there are no timestamps
    struct Sack {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;  // the first that is not in it
    };

    Peer source;
    Peer destination;
    std::uint32_t sequence = 0;
    std::uint32_t acknowledged = 0;
    std::uint8_t flags = kAck;
    std::uint16_t window = 0;  // scaled
    std::uint8_t tos = 0;      // DSCP and ECN
    std::uint32_t payload_bytes = 0;
    std::uint32_t sacks = 0;
    Sack sack[kMostSacks];
};

Frame write_segment(FramePool *frames, const TcpSegment &segment);
// False: it is no whole segment, or a checksum is wrong.
bool parse_segment(const Frame &frame, TcpSegment *segment);

}  // namespace ina::sim
