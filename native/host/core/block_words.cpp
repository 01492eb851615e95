#include "host/core/block_words.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "host/core/packed.hpp"
#include "host/core/quantize.hpp"
#include "host/core/unaligned.hpp"

namespace ina::host {
namespace {

constexpr std::uint8_t kCodeOffset = kMinBlockExponent - 1;  // the least exponent's code is 1
constexpr std::uint8_t kLargestCode = 255 - kCodeOffset;

// A code that nobody has said is no exponent.
bool is_summed(std::uint8_t code) { return code != BlockWords::kAllZero && code <= kLargestCode; }

// From the network's byte order to the processor's, and back.
void swap_words(std::uint8_t *words, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        store(words, i, big_endian(load<std::uint32_t>(words, i)));
    }
}

}  // namespace

// Where one block is, among all of a call.
struct BlockWords::Span {
    std::size_t index;
    std::size_t first;  // value
    std::size_t elems;
    std::size_t words_at;  // bytes
    std::size_t words;
};

BlockWords::BlockWords(const Collective &what, int workers, std::uint32_t rank,
                       std::uint64_t number, std::uint32_t values_per_packet)
    : what_(what), workers_(workers), rank_(rank), number_(number),
      per_word_(values_per_word(what.type)), block_elems_(values_per_packet * per_word_) {
    if (!is_float(what.type)) throw std::invalid_argument("int32 has no blocks");
    if (workers < 1 || workers > 65535 || values_per_packet == 0) {
        throw std::invalid_argument(std::to_string(workers) + " workers, " +
                                    std::to_string(values_per_packet) + " values a packet");
    }
}

std::size_t BlockWords::words(std::size_t elems) const {
    const std::size_t rest = elems % block_elems_;
    return (elems - rest) / per_word_ + (rest + per_word_ - 1) / per_word_;
}

template <typename Function>
void BlockWords::for_each_block(std::size_t elems, const Function &function) const {
    Span span{};
    for (; span.first < elems; ++span.index) {
        span.elems = std::min(block_elems_, elems - span.first);
        span.words = (span.elems + per_word_ - 1) / per_word_;
        function(span);
        span.first += span.elems;
        span.words_at += span.words * wire::kValueBytes;
    }
}

Block BlockWords::block_of(std::uint8_t code) const {
    return {what_.type, static_cast<std::uint8_t>(code + kCodeOffset), workers_, what_.rounding};
}

void BlockWords::find_codes(const void *values, std::size_t elems, std::uint8_t *codes) const {
    const auto *const bytes = static_cast<const std::uint8_t *>(values);
    const std::size_t elem_bytes = bytes_per_elem(what_.type);
    // As for the network: no sum is better than one that columns have no room for.
    const bool has_room = column_limit(32 / static_cast<std::uint32_t>(per_word_), workers_) != 0;
    const Kernels &kernels = best_kernels();
    for_each_block(elems, [&](const Span &span) {
        const BlockScan found =
            kernels.scan(element_of(what_.type), bytes + span.first * elem_bytes, span.elems);
        if (found.non_finite || !has_room) {
            codes[span.index] = kNotFinite;
        } else {
            codes[span.index] = found.exponent == 0
                                    ? kAllZero
                                    : static_cast<std::uint8_t>(found.exponent - kCodeOffset);
        }
    });
}

void BlockWords::write(const void *values, std::uint64_t first_elem, std::size_t elems,
                       const std::uint8_t *codes, std::uint8_t *words) const {
    const auto *const bytes = static_cast<const std::uint8_t *>(values);
    const std::size_t elem_bytes = bytes_per_elem(what_.type);
    const Codec &codec = codec_of(what_.type);
    for_each_block(elems, [&](const Span &span) {
        std::uint8_t *const to = words + span.words_at;
        const std::uint8_t code = codes[span.index];
        if (!is_summed(code)) {
            std::memset(to, 0, span.words * wire::kValueBytes);
            return;
        }
        Block block = block_of(code);
        if (block.rounding == Rounding::kStochastic) {
            block.key = rounding_key(number_, first_elem + span.first, rank_);
        }
        codec.write(block, bytes + span.first * elem_bytes, span.elems, to);
        swap_words(to, span.words);
    });
}

void BlockWords::read(std::uint8_t *words, std::size_t elems, const std::uint8_t *codes,
                      void *values) const {
    auto *const bytes = static_cast<std::uint8_t *>(values);
    const std::size_t elem_bytes = bytes_per_elem(what_.type);
    const Codec &codec = codec_of(what_.type);
    const int divisor = what_.op == Reduction::kAverage ? workers_ : 1;
    for_each_block(elems, [&](const Span &span) {
        std::uint8_t *const out = bytes + span.first * elem_bytes;
        const std::uint8_t code = codes[span.index];
        if (code == kAllZero) {
            std::memset(out, 0, span.elems * elem_bytes);
        } else if (!is_summed(code)) {
            fill_nan(what_.type, out, span.elems);
        } else {
            std::uint8_t *const sums = words + span.words_at;
            swap_words(sums, span.words);
            codec.read(block_of(code), sums, span.elems, divisor, out);
        }
    });
}

}  // namespace ina::host
