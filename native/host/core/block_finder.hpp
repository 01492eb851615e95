// Which blocks of a tensor are zero, for lanes that skip those (mode `stream`); and what a packet's
// last word says there: the sender's next block of the lane that is not zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/ina_wire.hpp"
#include "host/core/quantize.hpp"
#include "host/core/schedule.hpp"

namespace ina::host {

// On the wire: none. More than the number of any block.
inline constexpr std::uint32_t kNoBlock = UINT32_MAX;

// `word`: the last of a packet's values, as on the wire.
inline void store_next_block(std::uint8_t *word, std::uint64_t chunk) {
    const std::uint32_t said =
        chunk == Schedule::kNone ? kNoBlock : static_cast<std::uint32_t>(chunk);
    wire::store_be32(word, said);
}
inline std::uint64_t load_next_block(const std::uint8_t *word) {
    const std::uint32_t said = wire::load_be32(word);
    return said == kNoBlock ? Schedule::kNone : said;
}

class BlockFinder {
  public:
    BlockFinder(const Kernels &kernels, const Schedule &schedule)
        : kernels_(kernels), schedule_(schedule) {}

    // Of one block. -0 is zero, and what is not finite is not.
    BlockScan scan(const Tensor &tensor, std::uint64_t chunk) const {
        return kernels_.scan(element_of(tensor.request.type), tensor.chunk_in(chunk),
                             tensor.chunk_elems(chunk));
    }
    bool is_zero(const Tensor &tensor, std::uint64_t chunk) const {
        if (!tensor.has_values(chunk)) return true;
        if (is_float(tensor.request.type)) {
            const BlockScan found = scan(tensor, chunk);
            return found.exponent == wire::kExponentAllZero && !found.non_finite;
        }
        return are_zero(tensor.chunk_in(chunk), tensor.chunk_in_bytes(chunk));
    }
    // The lane's first one behind a block that is not zero; kNone: all others of the tensor are.
    std::uint64_t next(const Tensor &tensor, std::uint64_t chunk) const {
        do {
            chunk = schedule_.after(tensor.place, chunk);
        } while (chunk != Schedule::kNone && is_zero(tensor, chunk));
        return chunk;
    }
    // Of all the lane's blocks from one on: an exponent that serves each.
    std::uint8_t exponent_from(const Tensor &tensor, std::uint64_t chunk) const {
        std::uint8_t largest = wire::kExponentAllZero;
        schedule_.each_from(tensor.place, chunk, [&](std::uint64_t at) {
            const std::uint8_t found = scan(tensor, at).exponent;
            if (found > largest) largest = found;
        });
        return largest;
    }

  private:
    static bool are_zero(const std::uint8_t *bytes, std::size_t count) {
        std::size_t i = 0;
        for (; i + 64 <= count; i += 64) {  // a line of the cache at a time
            std::uint64_t words[8];
            std::memcpy(words, bytes + i, sizeof words);
            std::uint64_t any = 0;
            for (const std::uint64_t word : words) any |= word;
            if (any != 0) return false;
        }
        for (; i < count; ++i) {
            if (bytes[i] != 0) return false;
        }
        return true;
    }

    const Kernels &kernels_;
    Schedule schedule_;
};

}  // namespace ina::host
