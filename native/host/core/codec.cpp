#include "host/core/codec.hpp"

namespace ina::host {
namespace {

std::size_t write_dense(const Kernels &kernels, const Block &block, const void *values,
                        std::size_t count, std::uint8_t *words) {
    const float scale = is_float(block.type) ? block_scale(block.exponent, block.summands) : 1.0f;
    kernels.quantize(block.type, values, count, scale, words);
    return count;
}

void read_dense(const Kernels &kernels, const Block &block, const std::uint8_t *words,
                std::size_t count, int divisor, void *values) {
    Dequantization how;
    how.divisor = divisor;
    if (is_float(block.type)) {
        how.inverse_scale = inverse_block_scale(block.exponent, block.summands);
    }
    kernels.dequantize(block.type, words, count, how, values);
}

constexpr Codec kDense = {1, write_dense, read_dense};  // one value, one word

}  // namespace

const Codec &codec_of(ValueType type) {
    switch (type) {
        case ValueType::kInt32:
        case ValueType::kFloat32:
        case ValueType::kFloat16:
        case ValueType::kBfloat16: break;
    }
    return kDense;
}

}  // namespace ina::host
