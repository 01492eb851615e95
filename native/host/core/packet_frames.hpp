// Where a lane's packet is built, and stays for retransmission until its result is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "common/ina_wire.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

class PacketFrames {
  public:
    // One frame for each of `lanes`, with room for values_bytes, and for around_bytes in front of
    // the header and behind the values (Framing); in `memory` if it has any. Throws
    // std::invalid_argument when that is too small, and where there is something around: who reads
    // packets from there knows nothing of it.
    PacketFrames(std::uint32_t lanes, std::size_t values_bytes, std::size_t around_bytes,
                 const PacketMemory &memory)
        : memory_(memory) {
        if (memory_.base == nullptr) {
            // One packet right behind the other, for lanes that follow each other are sent
            // together: of a whole train the kernel then copies one piece.
            memory_.stride_bytes = around_bytes + wire::kHeaderBytes + values_bytes;
            memory_.frames = lanes;
            own_.resize(memory_.stride_bytes * lanes + 2 * kLineBytes);
            const auto base = reinterpret_cast<std::uintptr_t>(own_.data());
            memory_.base = own_.data() + ((kLineBytes - base % kLineBytes) % kLineBytes);
        } else if (around_bytes > 0) {
            throw std::invalid_argument("packets in shared memory have nothing around them");
        } else if (memory_.frames < lanes || memory_.stride_bytes < kLineBytes + values_bytes) {
            throw std::invalid_argument("no memory for packets of that size and number");
        }
    }

    std::uint8_t *packet(std::uint32_t lane) {  // its header
        // Where the stride is of whole lines the values, not the headers, begin on one.
        return memory_.base + memory_.stride_bytes * lane + (kLineBytes - wire::kHeaderBytes);
    }

  private:
    static constexpr std::size_t kLineBytes = 64;
    PacketMemory memory_;
    std::vector<std::uint8_t> own_;
};

}  // namespace ina::host
