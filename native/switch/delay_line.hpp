// Packets that leave a port later than the program let them: how a switch is made to seem far away.
// Copies are kept, so whoever emitted them may reuse the memory at once.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "switch/pipeline_abi.h"

namespace ina::sw {

constexpr uint64_t kNeverNs = UINT64_MAX;

class DelayLine {
  public:
    // More are not kept: 100 MB of full frames.
    static constexpr size_t kMostPackets = 65536;

    // The same for every packet, so they leave in the order in which they came; 0: at once.
    uint64_t delay_ns = 0;

    // Copies those for which there is room; returns how many there was none for.
    size_t put(const std::vector<ina_packet_out> &packets, uint64_t now_ns);
    // When the next packet is to leave (CLOCK_MONOTONIC); kNeverNs: there is none.
    uint64_t due_ns() const { return held_.empty() ? kNeverNs : held_.front().due_ns; }
    // Those that are due. They stay valid until drop() of as many.
    const std::vector<ina_packet_out> &due(uint64_t now_ns);
    void drop(size_t count);

  private:
    struct Held {
        uint64_t due_ns;
        uint32_t port;
        std::string frame;
    };

    std::deque<Held> held_;
    std::vector<ina_packet_out> due_;
};

}  // namespace ina::sw
