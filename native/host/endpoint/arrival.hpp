// One received packet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ina::host {

// What follows INA's header may lie elsewhere.
struct Arrival {
    const std::uint8_t *data;
    std::size_t bytes;                     // of all
    bool ip_marked;                        // Congestion Experienced
    const std::uint8_t *values = nullptr;  // null: they follow the header
};

}  // namespace ina::host
