#include "host/core/codec.hpp"

#include <cstring>

#include "common/ina_wire.hpp"
#include "host/core/packed.hpp"

namespace ina::host {
namespace {

std::size_t write_dense(const Block &block, const void *values, std::size_t count,
                        std::uint8_t *words) {
    const float scale = is_float(block.type) ? block_scale(block.exponent, block.summands) : 1.0f;
    best_kernels().quantize(block.type, values, count, scale, words);
    return count;
}

void read_dense(const Block &block, const std::uint8_t *words, std::size_t count, int divisor,
                void *values) {
    Dequantization how;
    how.divisor = divisor;
    if (is_float(block.type)) {
        how.inverse_scale = inverse_block_scale(block.exponent, block.summands);
    }
    best_kernels().dequantize(block.type, words, count, how, values);
}

std::size_t write_packed(const Block &block, const void *values, std::size_t count,
                         std::uint8_t *words) {
    Packing how = packing_of(block.type, block.exponent, block.summands);
    how.rounding = block.rounding;
    how.key = block.key;
    best_packed_kernels().pack(element_of(block.type), values, count, how, words);
    const std::size_t columns = values_per_word(block.type);
    return (count + columns - 1) / columns;
}

void read_packed(const Block &block, const std::uint8_t *words, std::size_t count, int divisor,
                 void *values) {
    const Packing how = packing_of(block.type, block.exponent, block.summands);
    best_packed_kernels().unpack(element_of(block.type), words, count, how.bits,
                                 {1.0f / how.scale, divisor}, values);
}

std::size_t write_bytes(const Block & /*block*/, const void *values, std::size_t count,
                        std::uint8_t *words) {
    const std::size_t whole = (count + wire::kValueBytes - 1) / wire::kValueBytes;
    std::memcpy(words, values, count);
    std::memset(words + count, 0, whole * wire::kValueBytes - count);
    return whole;
}

void read_bytes(const Block & /*block*/, const std::uint8_t *words, std::size_t count,
                int /*divisor*/, void *values) {
    std::memcpy(values, words, count);
}

constexpr Codec kMoved = {4, write_bytes, read_bytes};
constexpr Codec kDense = {1, write_dense, read_dense};  // one value, one word
constexpr Codec kPackedIn16 = {2, write_packed, read_packed};
constexpr Codec kPackedIn8 = {4, write_packed, read_packed};

}  // namespace

const Codec &codec_of(ValueType type) {
    if (type == ValueType::kBytes) return kMoved;
    switch (values_per_word(type)) {
        case kPackedIn16.per_word: return kPackedIn16;
        case kPackedIn8.per_word: return kPackedIn8;
        default: return kDense;
    }
}

}  // namespace ina::host
