// A float tensor as words whose sum others than the switch make, by the same numbers: where a job
// goes on without its switch, its results have the bits that the network would have given them.
//
// The workers agree on each block's code by its maximum, a byte, in place of the exponents in
// packets; then each writes its words, which anybody may add up, and reads the result out of the
// sums. Blocks are the chunks of the network, and words those of a packet, in the processor's byte
// order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/core/codec.hpp"

namespace ina::host {

class BlockWords {
  public:
    // Of a code: nothing but zeros; Inf or NaN. Between them it is the biased exponent - 31.
    static constexpr std::uint8_t kAllZero = 0;
    static constexpr std::uint8_t kNotFinite = 255;

    // what: of floats; its elements do not count. number: of the tensor, in the order of
    // submission. Throws std::invalid_argument: int32, or there is no such number of values or
    // workers.
    BlockWords(const Collective &what, int workers, std::uint32_t rank, std::uint64_t number,
               std::uint32_t values_per_packet);

    std::size_t blocks(std::size_t elems) const {
        return (elems + block_elems_ - 1) / block_elems_;
    }
    // The last block's may be fewer than a packet has.
    std::size_t words(std::size_t elems) const;

    // All of these are of `elems` values in a row that begin with a block. codes: one a block.
    void find_codes(const void *values, std::size_t elems, std::uint8_t *codes) const;
    // first_elem: of the values, in the tensor. codes: the agreed ones. Where the result does not
    // depend on what is summed, words are 0.
    void write(const void *values, std::uint64_t first_elem, std::size_t elems,
               const std::uint8_t *codes, std::uint8_t *words) const;
    // words: the sums, which are spoiled.
    void read(std::uint8_t *words, std::size_t elems, const std::uint8_t *codes,
              void *values) const;

  private:
    struct Span;
    template <typename Function>
    void for_each_block(std::size_t elems, const Function &function) const;
    Block block_of(std::uint8_t code) const;

    Collective what_;
    int workers_;
    std::uint32_t rank_;
    std::uint64_t number_;
    std::size_t per_word_;
    std::size_t block_elems_;
};

}  // namespace ina::host
