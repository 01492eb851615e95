// A frame that a program has left in parts, in one.
#pragma once

#include <string>

#include "switch/pipeline_abi.h"

namespace ina::sw {

inline std::string whole_frame(const ina_packet_out &packet) {
    const auto *const data = reinterpret_cast<const char *>(packet.data);
    const size_t head_bytes = packet.length - packet.trailer_length;
    std::string frame;
    frame.reserve(size_t{packet.length} + packet.tail_length);
    frame.append(data, head_bytes);
    frame.append(reinterpret_cast<const char *>(packet.tail), packet.tail_length);
    frame.append(data + head_bytes, packet.trailer_length);
    return frame;
}

}  // namespace ina::sw
