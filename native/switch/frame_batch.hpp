// Frames on their way into the pipeline: one arena, filled by ports, emptied whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ina_wire.hpp"
#include "switch/frame.hpp"
#include "switch/pipeline_abi.h"

namespace ina::sw {

class FrameBatch {
  public:
    // Two super-datagrams: these, what they sum into and what leaves for it stay in a core's cache.
    static constexpr size_t kMaxPackets = 192;
    static constexpr size_t kMaxFrameBytes = 65536 + 64;
    // One receive call yields at most this: a GRO super-datagram, or one large frame.
    static constexpr size_t kReceiveBytes = 65536 + 128 * 2 * 64;
    static constexpr size_t kReceivePackets = 128;

    FrameBatch() : memory_(new uint8_t[kArenaBytes + kLineBytes]) {
        // What follows Ethernet, IPv4, UDP and INA's header then begins with a cache line.
        const size_t values = kFrameHeaderBytes + wire::kHeaderBytes;
        const size_t misplaced = (reinterpret_cast<uintptr_t>(memory_.get()) + values) % kLineBytes;
        arena_ = memory_.get() + (kLineBytes - misplaced) % kLineBytes;
        packets_.reserve(kMaxPackets);
    }

    bool has_room() const {
        return packets_.size() + kReceivePackets <= kMaxPackets &&
               used_ + kReceiveBytes <= kArenaBytes;
    }
    // Space for one frame, or nullptr; taken by the commit() that follows.
    uint8_t *reserve(size_t bytes) {
        if (packets_.size() == kMaxPackets || used_ + stride(bytes) > kArenaBytes) return nullptr;
        return arena_ + used_;
    }
    void commit(size_t bytes, uint32_t port, uint64_t now_ns) {
        commit_with(bytes, nullptr, 0, port, now_ns);
    }
    // The same for a frame that goes on at `tail`, which stays there until clear().
    void commit_with(size_t bytes, const uint8_t *tail, size_t tail_bytes, uint32_t port,
                     uint64_t now_ns) {
        packets_.push_back({arena_ + used_, static_cast<uint32_t>(bytes), port, now_ns, tail,
                            static_cast<uint32_t>(tail_bytes)});
        used_ += stride(bytes);
    }
    // Places for so many frames of this size; fewer if there is no room for all.
    size_t room_for(size_t bytes, size_t most) const {
        const size_t frames = kMaxPackets - packets_.size();
        const size_t fit = (kArenaBytes - used_) / stride(bytes);
        return std::min({most, frames, fit});
    }
    void clear() {
        packets_.clear();
        used_ = 0;
    }

    uint64_t now_ns = 0;  // arrival time for ports that have no better one

    const std::vector<ina_packet_in> &packets() const { return packets_; }

  private:
    // From one frame to the next.
    static size_t stride(size_t bytes) {
        return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    }

    static constexpr size_t kLineBytes = 64;
    static constexpr size_t kArenaBytes = 512 * 1024;
    std::unique_ptr<uint8_t[]> memory_;
    uint8_t *arena_;
    size_t used_ = 0;
    std::vector<ina_packet_in> packets_;
};

}  // namespace ina::sw
