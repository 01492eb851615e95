// Packets that are to leave, in one piece of memory that is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/peer.hpp"
#include "common/sealed.hpp"
#include "infer/wire.hpp"

namespace ina::infer {

struct Leaving {
    Peer to;
    std::size_t offset;
    std::size_t bytes;
};

class Outbox {
  public:
    // Behind the header there is room for so many bytes, which the caller fills before seal().
    std::uint8_t *open(const Peer &to, const Header &header, std::size_t payload_bytes) {
        const std::size_t offset = memory_.size();
        const std::size_t bytes = kHeaderBytes + payload_bytes;
        memory_.resize(offset + bytes);
        std::memcpy(memory_.data() + offset, &header, kHeaderBytes);
        packets_.push_back({to, offset, bytes});
        return memory_.data() + offset + kHeaderBytes;
    }
    void seal() {
        const Leaving &last = packets_.back();
        ina::seal(memory_.data() + last.offset, last.bytes, kCrcOffset);
    }
    void put(const Peer &to, const Header &header) {
        open(to, header, 0);
        seal();
    }
    const std::vector<Leaving> &packets() const { return packets_; }
    const std::uint8_t *data(const Leaving &packet) const { return memory_.data() + packet.offset; }
    void clear() {
        packets_.clear();
        memory_.clear();
    }

  private:
    std::vector<std::uint8_t> memory_;
    std::vector<Leaving> packets_;
};

// Whether it is a whole packet of who knows the key; `header` is set only then.
inline bool is_whole(const std::uint8_t *packet, std::size_t bytes, std::uint64_t key,
                     Header *header) {
    if (bytes < kHeaderBytes) return false;
    const Header read = load_header(packet);
    if (read.version != kVersion || read.key != key || !is_sealed(packet, bytes, kCrcOffset)) {
        return false;
    }
    *header = read;
    return true;
}

}  // namespace ina::infer
