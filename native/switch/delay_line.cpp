#include "switch/delay_line.hpp"

#include "switch/whole_frame.hpp"

namespace ina::sw {

size_t DelayLine::put(const std::vector<ina_packet_out> &packets, uint64_t now_ns) {
    for (size_t i = 0; i < packets.size(); ++i) {
        if (held_.size() == kMostPackets) return packets.size() - i;
        const ina_packet_out &packet = packets[i];
        held_.push_back({now_ns + delay_ns, packet.port, whole_frame(packet)});
    }
    return 0;
}

const std::vector<ina_packet_out> &DelayLine::due(uint64_t now_ns) {
    due_.clear();
    for (Held &held : held_) {
        if (held.due_ns > now_ns) break;
        due_.push_back({reinterpret_cast<uint8_t *>(held.frame.data()),
                        static_cast<uint32_t>(held.frame.size()), held.port, nullptr, 0, 0});
    }
    return due_;
}

void DelayLine::drop(size_t count) {
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace ina::sw
