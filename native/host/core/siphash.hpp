// SipHash-2-4 (Aumasson and Bernstein, 2012) of three 64-bit words: a pseudo-random function with a
// key of 128 bits. The same as of the 24 bytes, each word little endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ina::host {

using SecretKey = std::array<std::uint8_t, 16>;
using SipWords = std::array<std::uint64_t, 3>;

class SipHash {
  public:
    explicit SipHash(const SecretKey &key) : k0_(load(key, 0)), k1_(load(key, 8)) {}

    // Of `Count` inputs at once, for they do not wait for each other.
    template <std::size_t Count>
    std::array<std::uint64_t, Count> of(const std::array<SipWords, Count> &inputs) const {
        State state[Count];
        for (State &s : state) {
            s = {k0_ ^ 0x736f6d6570736575, k1_ ^ 0x646f72616e646f6d, k0_ ^ 0x6c7967656e657261,
                 k1_ ^ 0x7465646279746573};
        }
        constexpr std::uint64_t kLength = std::uint64_t{24} << 56;
        for (std::size_t word = 0; word < 4; ++word) {
            for (std::size_t i = 0; i < Count; ++i) {
                const std::uint64_t block = word < 3 ? inputs[i][word] : kLength;
                state[i].v3 ^= block;
                round(state[i]);
                round(state[i]);
                state[i].v0 ^= block;
            }
        }
        std::array<std::uint64_t, Count> hashes;
        for (State &s : state) s.v2 ^= 0xff;
        for (int rounds = 0; rounds < 4; ++rounds) {
            for (State &s : state) round(s);
        }
        for (std::size_t i = 0; i < Count; ++i) {
            hashes[i] = state[i].v0 ^ state[i].v1 ^ state[i].v2 ^ state[i].v3;
        }
        return hashes;
    }

    std::uint64_t of(const SipWords &input) const { return of(std::array<SipWords, 1>{input})[0]; }

  private:
    struct State {
        std::uint64_t v0, v1, v2, v3;
    };

    static std::uint64_t load(const SecretKey &key, std::size_t first) {
        std::uint64_t word = 0;
        for (std::size_t i = 8; i-- > 0;) word = word << 8 | key[first + i];
        return word;
    }
    static std::uint64_t rotate(std::uint64_t word, int bits) {
        return word << bits | word >> (64 - bits);
    }
    static void round(State &s) {
        s.v0 += s.v1;
        s.v1 = rotate(s.v1, 13) ^ s.v0;
        s.v0 = rotate(s.v0, 32);
        s.v2 += s.v3;
        s.v3 = rotate(s.v3, 16) ^ s.v2;
        s.v0 += s.v3;
        s.v3 = rotate(s.v3, 21) ^ s.v0;
        s.v2 += s.v1;
        s.v1 = rotate(s.v1, 17) ^ s.v2;
        s.v2 = rotate(s.v2, 32);
    }

    std::uint64_t k0_;
    std::uint64_t k1_;
};

}  // namespace ina::host
