// Packets of a message, and what a node makes of what comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/sealed.hpp"
#include "embed/wire.hpp"

namespace ina::embed {

struct Packet {
    std::uint16_t to = 0;  // host
    std::vector<std::uint8_t> bytes;
};

class Outbox {
  public:
    void put(std::uint16_t to, const Header &header, const std::uint8_t *payload,
             std::size_t bytes) {
        Packet packet{to, std::vector<std::uint8_t>(kHeaderBytes + bytes)};
        std::memcpy(packet.bytes.data(), &header, kHeaderBytes);
        if (bytes > 0) std::memcpy(packet.bytes.data() + kHeaderBytes, payload, bytes);
        seal(packet.bytes.data(), packet.bytes.size(), kCrcOffset);
        packets_.push_back(std::move(packet));
    }
    // A mask alone, or in front of something.
    void put_mask(std::uint16_t to, const Header &header, std::uint64_t mask,
                  const std::vector<std::uint8_t> &behind = {}) {
        std::vector<std::uint8_t> payload(kMaskBytes + behind.size());
        std::memcpy(payload.data(), &mask, kMaskBytes);
        if (!behind.empty()) std::memcpy(payload.data() + kMaskBytes, behind.data(), behind.size());
        put(to, header, payload.data(), payload.size());
    }
    std::vector<Packet> take() { return std::exchange(packets_, {}); }
    bool is_empty() const { return packets_.empty(); }

  private:
    std::vector<Packet> packets_;
};

// Whether it is a whole packet of the group, from one of its hosts; `header` is set only then.
inline bool is_whole(const std::uint8_t *packet, std::size_t bytes, std::uint64_t key,
                     std::uint16_t hosts, Header *header) {
    if (bytes < kHeaderBytes) return false;
    Header read = load_header(packet);
    if (read.version != kVersion || read.key != key || read.sender >= hosts) return false;
    if (!is_sealed(packet, bytes, kCrcOffset) || read.parts == 0 || read.parts > kMaxParts ||
        read.part >= read.parts) {
        return false;
    }
    read.crc = 0;
    *header = read;
    return true;
}

inline bool read_mask(const std::uint8_t *payload, std::size_t bytes, std::uint64_t *mask) {
    if (bytes < kMaskBytes) return false;
    std::memcpy(mask, payload, kMaskBytes);
    return true;
}

// A message of several parts, as far as they have come.
class Assembly {
  public:
    bool is_complete() const { return parts_ != 0 && have_ == all_parts(parts_); }
    std::uint64_t have() const { return have_; }
    const std::vector<std::uint8_t> &bytes() const { return bytes_; }

    // False: it is not a part of this message. All but the last have part_bytes.
    bool add(const Header &header, const std::uint8_t *payload, std::size_t bytes,
             std::size_t part_bytes) {
        if (parts_ == 0) {
            parts_ = header.parts;
            bytes_.resize(parts_ * part_bytes);
        }
        const bool is_last = header.part + 1 == parts_;
        if (header.parts != parts_ || header.part >= parts_ ||
            (is_last ? bytes > part_bytes : bytes != part_bytes)) {
            return false;
        }
        if (have_ >> header.part & 1) return true;
        have_ |= std::uint64_t{1} << header.part;
        if (bytes > 0) std::memcpy(bytes_.data() + header.part * part_bytes, payload, bytes);
        if (is_last) bytes_.resize((parts_ - std::size_t{1}) * part_bytes + bytes);
        return true;
    }

  private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t have_ = 0;
    std::uint16_t parts_ = 0;
};

}  // namespace ina::embed
