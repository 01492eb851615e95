// What tells in a packet that workers have submitted different things.
//
// Each worker keeps a digest of all that it has submitted, and says 16 bits of it in each
// contribution: of everything up to the tensor that the chunk is of, and of the chunk's sequence
// number. The switch adds them up. Where all agree, the sum is n times what each of them said.
//
// The sequence number is in it, so that each round is another throw of the dice: digests whose 16
// bits happen to be equal in one round are not so in the next. docs/protocol.md says how likely it
// is that a difference is not seen.
#pragma once

#include <cstdint>

#include "host/core/collective.hpp"

namespace ina::host {

// A bijection in which each bit of the word moves half of the others (the finaliser of SplitMix64).
inline std::uint64_t mix(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

// Of what was submitted so far, in its order. Depends on nothing else.
class SubmissionDigest {
  public:
    void add(const Collective &what) {
        value_ = mix(value_ ^ what.elems);
        value_ = mix(value_ ^ what.word());
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0x9e3779b97f4a7c15;  // an empty tensor counts, too: mix(0) is 0
};

// The header's field `digest`, in a round of a tensor up to which the digest is this.
inline std::uint16_t round_digest(std::uint64_t digest, std::uint32_t seq) {
    return static_cast<std::uint16_t>(mix(digest ^ (std::uint64_t{seq} << 32 | seq)) >> 48);
}

}  // namespace ina::host
