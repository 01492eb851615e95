// Numbers in a tensor's or a packet's memory, wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "host/core/float_formats.hpp"

namespace ina::host {

template <class T>
INA_ALWAYS_INLINE T load(const void *base, std::size_t index) {
    T value;
    std::memcpy(&value, static_cast<const std::uint8_t *>(base) + index * sizeof(T), sizeof value);
    return value;
}

template <class T>
INA_ALWAYS_INLINE void store(void *base, std::size_t index, T value) {
    std::memcpy(static_cast<std::uint8_t *>(base) + index * sizeof(T), &value, sizeof value);
}

// And back.
INA_ALWAYS_INLINE std::uint32_t big_endian(std::uint32_t value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap32(value);
#else
    return value;
#endif
}

}  // namespace ina::host
