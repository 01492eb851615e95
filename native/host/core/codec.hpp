// How a chunk's values become the words of a packet, which the switch adds, and their sums values
// again. A codec is a row in codec.cpp, by value type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/core/collective.hpp"

namespace ina::host {

// What the workers agree on of a block of values.
struct Block {
    ValueType type;
    std::uint8_t exponent;  // of floats: that all values fit
    int summands;           // contributions in a sum
    Rounding rounding = Rounding::kNearest;
    std::uint32_t key = 0;  // of the random bits that stochastic rounding takes
};

struct Codec {
    std::uint32_t per_word;  // values in an int32, as the switch adds them
    // Returns how many words it has written, big-endian.
    std::size_t (*write)(const Block &block, const void *values, std::size_t count,
                         std::uint8_t *words);
    // divisor: of an average; 1: the sums. words: as on the wire.
    void (*read)(const Block &block, const std::uint8_t *words, std::size_t count, int divisor,
                 void *values);
};

const Codec &codec_of(ValueType type);

}  // namespace ina::host
