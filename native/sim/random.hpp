// Random numbers of the virtual network. Each element draws from a stream of its own, which follows
// from the scenario's seed and the element's name alone: an element more, or one that draws more
// often, changes nothing for the others. Integer arithmetic and comparisons only, so that the same
// seed gives the same network on every machine; nothing of libm, whose last bits differ.
#pragma once

#include <cstdint>
#include <string_view>

namespace ina::sim {

// xoshiro256** (Blackman and Vigna, 2018), seeded by SplitMix64.
class Stream {
  public:
    Stream(std::uint64_t seed, std::string_view name) {
        std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
        for (const char c : name) {
            hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
        }
        std::uint64_t state = seed ^ hash;
        for (std::uint64_t &word : words_) {
            state += 0x9e3779b97f4a7c15;
            std::uint64_t mixed = state;
            mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
            mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
            word = mixed ^ (mixed >> 31);
        }
    }

    std::uint64_t next() {
        const std::uint64_t result = rotated(words_[1] * 5, 7) * 9;
        const std::uint64_t shifted = words_[1] << 17;
        words_[2] ^= words_[0];
        words_[3] ^= words_[1];
        words_[1] ^= words_[2];
        words_[0] ^= words_[3];
        words_[2] ^= shifted;
        words_[3] = rotated(words_[3], 45);
        return result;
    }

    // In [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    // With this probability. Draws nothing where there is nothing to decide.
    bool chance(double probability) {
        return probability > 0 && (probability >= 1 || uniform() < probability);
    }

    // In [0, bound); bound at least 1. The bias is below bound / 2^64.
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(next()) * bound >> 64);
    }

    // Exponentially distributed with mean 1, by von Neumann's comparisons (1951): a run of draws,
    // each less than the one before, that ends after an odd number of them keeps the first.
    double exponential() {
        for (double whole = 0;; whole += 1) {
            const double first = uniform();
            double last = first;
            for (bool is_odd = true;; is_odd = !is_odd) {
                const double draw = uniform();
                if (draw >= last) {
                    if (is_odd) return whole + first;
                    break;
                }
                last = draw;
            }
        }
    }

  private:
    static std::uint64_t rotated(std::uint64_t word, int bits) {
        return word << bits | word >> (64 - bits);
    }

    std::uint64_t words_[4];
};

}  // namespace ina::sim
