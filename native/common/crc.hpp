// CRC-32 by the instructions that this processor has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/crc32.h"

namespace ina {

inline constexpr std::uint32_t kCrcStart =
    0xffffffff;  // and what comes of the last is complemented

inline std::uint32_t crc32(std::uint32_t crc, const std::uint8_t *data, std::size_t bytes) {
    static const auto by = ina_has_fast_crc32() ? ina_crc32_fast : ina_crc32_plain;
    return by(crc, data, bytes);
}

}  // namespace ina
