// What nodes of a plan, and who asks them, say to each other, in UDP datagrams of ports of their
// own: to switches it is ordinary traffic. Control travels in each packet: of which plan and block
// it is, what it is for, and who has asked. Sums of layers that are split by columns do not go this
// way but as contributions of a job.
//
// Both ends are hosts, so numbers are little endian, as on nearly all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ina::infer {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kCrcOffset = 4;
inline constexpr std::size_t kValueBytes = 4;
inline constexpr std::uint16_t kClient = 0xffff;  // as the sender, or as nobody
inline constexpr std::uint16_t kMaxNodes = 64;    // bits of a mask

enum class Kind : std::uint8_t {
    kTask = 1,      // values, for a stage: from who asks to the entry, and from node to node
    kAnswer = 2,    // values, to who has asked
    kProgress = 3,  // which blocks from `base` on a node is done with, as bits: to the entry
    kPing = 4,      // the entry's: say your progress
    kFault = 5,     // the plan does not work any more, or this request cannot: see Fault
    kStatus = 6,    // the entry's, of a block that is under way: who has been silent, how long
};

enum class Fault : std::uint16_t {
    kNone = 0,
    kNodeLost = 1,    // `source` is not heard any more
    kSumsLost = 2,    // of a stage: the switch, or who else gives to them, is not heard any more
    kOtherPlan = 3,   // who asks has another plan
    kOutOfRange = 4,  // values of the block are not what the plan admits
};

struct Header {
    std::uint8_t version = kVersion;
    Kind kind = Kind::kTask;
    std::uint16_t sender = 0;  // node
    std::uint32_t crc = 0;     // CRC-32 of the packet
    std::uint64_t key = 0;     // of the plan's nodes; who does not know it is not heard
    std::uint64_t seq = 0;     // of the block among all of the plan's, by its entry
    std::uint64_t base = 0;    // all nodes are done with blocks before this one
    std::uint32_t plan = 0;    // a digest of it
    std::uint32_t nonce = 0;   // drawn by who asks, so that answers are not another's
    std::uint32_t request = 0;
    std::uint32_t block = 0;        // of the request
    std::uint32_t client_ipv4 = 0;  // where the answer goes
    std::uint16_t client_port = 0;
    std::uint16_t stage = 0;    // that the values are for; of a fault: which
    std::uint16_t source = 0;   // node whose values they are
    std::uint16_t attempt = 0;  // 0: sent first; larger: what was sent is sent again
    std::uint32_t piece = 0;    // of the source's values: packets of one size, the last one shorter
};
static_assert(sizeof(Header) == kHeaderBytes);

inline Header load_header(const std::uint8_t *packet) {
    Header header;
    std::memcpy(&header, packet, sizeof header);
    return header;
}

}  // namespace ina::infer
