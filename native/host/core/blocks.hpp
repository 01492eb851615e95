// Blocks of a tensor: which of them hold something, and the way of those into a buffer of their own
// and back. Memory is moved as it is, whatever its type. All of it runs at the memory's speed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/core/quantize.hpp"

namespace ina::host {

// Of one block.
enum class Mark : std::uint8_t {
    kZero = 0,      // all bits are 0
    kNonZero = 1,   // a value is not 0; NaN is none
    kNegative = 2,  // zeros, of which some have a sign
};

// `bytes` cut into blocks of `block_bytes`; the last may be shorter.
struct BlockShape {
    std::size_t bytes;
    std::size_t block_bytes;

    std::size_t blocks() const { return (bytes + block_bytes - 1) / block_bytes; }
};

// What becomes of the blocks that nothing is brought to.
enum class Others : std::uint8_t {
    kStay = 0,    // they are zero
    kClear = 1,   // set all of them to zero
    kByMark = 2,  // set those to zero that are marked kNegative; the others are zero
};

// `marks`: one for each block; returns how many are kNonZero.
std::size_t mark_blocks(ValueType type, const void *tensor, BlockShape shape, std::uint8_t *marks);

// `group_marks`: kNonZero where one of `group_blocks` blocks is.
void mark_groups(const std::uint8_t *marks, std::size_t blocks, std::size_t group_blocks,
                 std::uint8_t *group_marks);

// Counters of `bits`, as many as go into a word, the first lowest: 1 where a block is kNonZero.
void pack_marks(const std::uint8_t *marks, std::size_t blocks, unsigned bits, std::uint32_t *words);

// How many of the summed counters are not 0, and which: `found` has room for as many.
std::size_t count_marked(const std::uint32_t *words, std::size_t blocks, unsigned bits);
void find_marked(const std::uint32_t *words, std::size_t blocks, unsigned bits,
                 std::int64_t *found);

// The blocks of these numbers, which rise, one behind the other.
void gather_blocks(const void *tensor, BlockShape shape, const std::int64_t *which,
                   std::size_t count, void *compact);

// And back. `marks`: of Others::kByMark.
void spread_blocks(const void *compact, BlockShape shape, const std::int64_t *which,
                   std::size_t count, Others others, const std::uint8_t *marks, void *tensor);

// Rows of the numbers `own`, which rise, to where those of `all`, which rise and hold them, are;
// zeros to where there is none.
void spread_rows(const void *rows, std::size_t row_bytes, const std::int64_t *own,
                 std::size_t own_count, const std::int64_t *all, std::size_t all_count,
                 void *spread);

}  // namespace ina::host
