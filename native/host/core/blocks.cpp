#include "host/core/blocks.hpp"

#include <algorithm>
#include <cstring>

#include "host/core/unaligned.hpp"

namespace ina::host {
namespace {

constexpr std::uint8_t kNonZero = static_cast<std::uint8_t>(Mark::kNonZero);
constexpr std::uint8_t kNegative = static_cast<std::uint8_t>(Mark::kNegative);

// Words of a step of the search: a block that holds something is left after the first such step.
constexpr std::size_t kFirstStep = 8;
constexpr std::size_t kStep = 64;

// All bits but the signs of as many values as a word of 64 bits has.
std::uint64_t magnitude_of(ValueType type) {
    if (type == ValueType::kInt32) return ~std::uint64_t{0};
    if (type == ValueType::kFloat32) return 0x7fffffff7fffffff;
    return 0x7fff7fff7fff7fff;
}

template <std::size_t kWords>
INA_ALWAYS_INLINE std::uint64_t any_of(const std::uint8_t *from) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < kWords; ++i) any |= load<std::uint64_t>(from, i);
    return any;
}

// Of less than a step.
INA_ALWAYS_INLINE std::uint64_t any_of_rest(const std::uint8_t *from, std::size_t bytes) {
    constexpr std::size_t few_bytes = kFirstStep * sizeof(std::uint64_t);
    std::uint64_t any = 0;
    for (; bytes >= few_bytes; from += few_bytes, bytes -= few_bytes)
        any |= any_of<kFirstStep>(from);
    for (; bytes >= sizeof any; from += sizeof any, bytes -= sizeof any) {
        any |= load<std::uint64_t>(from, 0);
    }
    std::uint64_t rest = 0;
    if (bytes > 0) std::memcpy(&rest, from, bytes);  // whole values, from a word's beginning
    return any | rest;
}

std::uint8_t mark_of(const std::uint8_t *block, std::size_t bytes, std::uint64_t magnitude) {
    constexpr std::size_t first_bytes = kFirstStep * sizeof(std::uint64_t);
    constexpr std::size_t step_bytes = kStep * sizeof(std::uint64_t);
    std::uint64_t any = 0;
    std::size_t at = 0;
    if (bytes >= first_bytes) {
        any = any_of<kFirstStep>(block);
        if ((any & magnitude) != 0) return kNonZero;
        at = first_bytes;
    }
    for (; at + step_bytes <= bytes; at += step_bytes) {
        any |= any_of<kStep>(block + at);
        if ((any & magnitude) != 0) return kNonZero;
    }
    any |= any_of_rest(block + at, bytes - at);
    if ((any & magnitude) != 0) return kNonZero;
    return any != 0 ? kNegative : 0;
}

std::size_t bytes_of(BlockShape shape, std::size_t block) {
    return std::min(shape.block_bytes, shape.bytes - block * shape.block_bytes);
}

void clear_blocks(BlockShape shape, std::size_t from, std::size_t to, Others others,
                  const std::uint8_t *marks, std::uint8_t *tensor) {
    if (others == Others::kStay || from == to) return;
    if (others == Others::kClear) {
        const std::size_t first = from * shape.block_bytes;
        std::memset(tensor + first, 0, std::min(to * shape.block_bytes, shape.bytes) - first);
        return;
    }
    for (std::size_t block = from; block < to; ++block) {
        if (marks[block] != kNegative) continue;
        std::memset(tensor + block * shape.block_bytes, 0, bytes_of(shape, block));
    }
}

// function(word, first block of it, blocks of it) for each that is not 0.
template <class Function>
INA_ALWAYS_INLINE void each_word(const std::uint32_t *words, std::size_t blocks, unsigned bits,
                                 Function function) {
    const std::size_t per_word = 32 / bits;
    for (std::size_t first = 0, i = 0; first < blocks; first += per_word, ++i) {
        if (words[i] != 0) function(words[i], first, std::min(per_word, blocks - first));
    }
}

constexpr std::uint32_t counter_mask(unsigned bits) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
}

}  // namespace

std::size_t mark_blocks(ValueType type, const void *tensor, BlockShape shape, std::uint8_t *marks) {
    const auto *values = static_cast<const std::uint8_t *>(tensor);
    const std::uint64_t magnitude = magnitude_of(type);
    std::size_t found = 0;
    for (std::size_t block = 0; block < shape.blocks(); ++block) {
        marks[block] =
            mark_of(values + block * shape.block_bytes, bytes_of(shape, block), magnitude);
        found += marks[block] == kNonZero ? 1 : 0;
    }
    return found;
}

void mark_groups(const std::uint8_t *marks, std::size_t blocks, std::size_t group_blocks,
                 std::uint8_t *group_marks) {
    for (std::size_t first = 0; first < blocks; first += group_blocks) {
        const std::uint8_t *const end = marks + std::min(first + group_blocks, blocks);
        const bool any = std::find(marks + first, end, kNonZero) != end;
        *group_marks++ = any ? kNonZero : 0;
    }
}

void pack_marks(const std::uint8_t *marks, std::size_t blocks, unsigned bits,
                std::uint32_t *words) {
    const std::size_t per_word = 32 / bits;
    for (std::size_t first = 0; first < blocks; first += per_word) {
        const std::size_t count = std::min(per_word, blocks - first);
        std::uint32_t word = 0;
        for (std::size_t i = 0; i < count; ++i) {
            word |= std::uint32_t{marks[first + i] == kNonZero} << (i * bits);
        }
        *words++ = word;
    }
}

std::size_t count_marked(const std::uint32_t *words, std::size_t blocks, unsigned bits) {
    const std::uint32_t mask = counter_mask(bits);
    std::size_t marked = 0;
    each_word(words, blocks, bits, [&](std::uint32_t word, std::size_t, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) marked += (word >> (i * bits) & mask) != 0 ? 1 : 0;
    });
    return marked;
}

void find_marked(const std::uint32_t *words, std::size_t blocks, unsigned bits,
                 std::int64_t *found) {
    const std::uint32_t mask = counter_mask(bits);
    each_word(words, blocks, bits, [&](std::uint32_t word, std::size_t first, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if ((word >> (i * bits) & mask) != 0) *found++ = static_cast<std::int64_t>(first + i);
        }
    });
}

void gather_blocks(const void *tensor, BlockShape shape, const std::int64_t *which,
                   std::size_t count, void *compact) {
    const auto *from = static_cast<const std::uint8_t *>(tensor);
    auto *to = static_cast<std::uint8_t *>(compact);
    for (std::size_t i = 0; i < count; ++i, to += shape.block_bytes) {
        const auto block = static_cast<std::size_t>(which[i]);
        std::memcpy(to, from + block * shape.block_bytes, bytes_of(shape, block));
    }
}

void spread_blocks(const void *compact, BlockShape shape, const std::int64_t *which,
                   std::size_t count, Others others, const std::uint8_t *marks, void *tensor) {
    const auto *from = static_cast<const std::uint8_t *>(compact);
    auto *to = static_cast<std::uint8_t *>(tensor);
    std::size_t next = 0;
    for (std::size_t i = 0; i < count; ++i, from += shape.block_bytes) {
        const auto block = static_cast<std::size_t>(which[i]);
        clear_blocks(shape, next, block, others, marks, to);
        std::memcpy(to + block * shape.block_bytes, from, bytes_of(shape, block));
        next = block + 1;
    }
    clear_blocks(shape, next, shape.blocks(), others, marks, to);
}

void spread_rows(const void *rows, std::size_t row_bytes, const std::int64_t *own,
                 std::size_t own_count, const std::int64_t *all, std::size_t all_count,
                 void *spread) {
    const auto *from = static_cast<const std::uint8_t *>(rows);
    auto *to = static_cast<std::uint8_t *>(spread);
    std::size_t next = 0;
    for (std::size_t i = 0; i < all_count; ++i, to += row_bytes) {
        if (next < own_count && own[next] == all[i]) {
            std::memcpy(to, from + next++ * row_bytes, row_bytes);
        } else {
            std::memset(to, 0, row_bytes);
        }
    }
}

}  // namespace ina::host
