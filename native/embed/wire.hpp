// What services of embeddings say to each other, in UDP datagrams of a port of their own: to
// switches it is ordinary traffic.
//
// A message is a string of bytes that is cut into parts of one size, the last one shorter: what is
// asked is one part, and its answer, or gradients, are up to kMaxParts. Both ends are hosts, so
// numbers are little endian, as on nearly all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ina::embed {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kMaxParts = 64;  // bits of a mask
inline constexpr std::size_t kMaskBytes = 8;

enum class Kind : std::uint8_t {
    kLookup = 1,    // bags, whose sums are wanted; before them a mask of the answer's parts
    kRows = 2,      // a part of the sums: float32, one vector for each bag
    kGradient = 3,  // a part of bags and what is to be added to the gradient of each of their rows
    kReceived = 4,  // a mask of the parts that have come of such a message
    kWait = 5,      // a mask (kMaxHosts bits) of hosts whose gradients the asked step waits for
};

inline constexpr std::uint8_t kFlagSingle = 0x01;    // each bag has one row: no counts
inline constexpr std::uint8_t kFlagWeighted = 0x02;  // a float32 for each row of a bag
inline constexpr std::uint8_t kFlagState = 0x04;     // the optimiser's numbers follow each row's
inline constexpr std::uint8_t kFlagLast = 0x08;      // no gradients of this step come behind these
inline constexpr std::uint8_t kFlagAgain = 0x10;     // sent before; or answers what was
// kWait: the sender has given up; the mask names the host that is lost, if one is.
inline constexpr std::uint8_t kFlagFault = 0x20;

struct Header {
    std::uint8_t version = kVersion;
    Kind kind = Kind::kLookup;
    std::uint8_t flags = 0;
    std::uint8_t part = 0;
    std::uint16_t sender = 0;  // host
    std::uint16_t table = 0;
    std::uint64_t key = 0;   // of the group; who does not know it is not heard
    std::uint32_t step = 0;  // whose version of the tables is read, or whose gradients these are
    // Of the message: an answer has its question's. Of lookups they go on for ever; of gradients
    // they count from 0 in each step, for each owner.
    std::uint32_t number = 0;
    std::uint16_t bags = 0;   // of the message
    std::uint16_t parts = 0;  // of the message; of a lookup: of its answer
    std::uint32_t crc = 0;    // CRC-32 of the packet, with this taken as 0
};
static_assert(sizeof(Header) == kHeaderBytes);

inline constexpr std::size_t kCrcOffset = 28;

inline Header load_header(const std::uint8_t *packet) {
    Header header;
    std::memcpy(&header, packet, sizeof header);
    return header;
}

inline std::uint64_t all_parts(std::size_t parts) {
    return parts >= kMaxParts ? ~std::uint64_t{0} : (std::uint64_t{1} << parts) - 1;
}

// Of a message of so many bytes, at least one.
inline std::size_t parts_of(std::size_t bytes, std::size_t part_bytes) {
    return bytes <= part_bytes ? 1 : (bytes + part_bytes - 1) / part_bytes;
}

}  // namespace ina::embed
