// Whether a sum is what the workers sent: a number beside the values, linear in them, which the
// switch adds like a value. docs/protocol.md, "Verified sums", says why it holds and what passes.
//
// Each worker w of n sends the check
//
//     c_w = sum of a_i v_i  +  f(w) - f(w + 1 mod n)  +  (r if w = 0)  +  its claim
//
// and takes a result with values S_i only if the sum C of the checks is
// sum of a_i S_i + r + claims that fit. The weights a_i and the worth of a claim are drawn for the
// epoch; the pads f and r for each round anew, of all that workers must have said alike (RoundTag):
// if one has said something else, the pads do not cancel.
//
// No sum in a packet wraps, so all that is modulo 2^64 and the upper half travels; the n lower
// halves that are missing carry 0..n-1 into C. Values of int32 whose sum might wrap are sent as two
// halves (integers.hpp): a check that the switch adds modulo 2^32 would tell of all flips of bit 31
// in values that it adds modulo 2^32 only whether they are odd in number. Mode kAccidents has a key
// that is known to everybody, and cheap pads.
//
// A claim says something that is no sum: the largest exponent is a worker's own, a value is not
// finite, a guess was too small. Results are only believed to say so if somebody has claimed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/core/quantize.hpp"
#include "host/core/siphash.hpp"
#include "host/core/weigh.hpp"

namespace ina::host {

enum class VerifyMode : std::uint8_t { kOff, kAccidents, kKeyed };

// What all workers say alike in a round, or their pads do not cancel.
struct RoundTag {
    std::uint64_t number = 0;  // the sequence number, not wrapped around: never comes twice
    std::uint64_t digest = 0;  // of all that was submitted up to the tensor
    ValueType type = ValueType::kInt32;
    std::uint8_t exponent = 0;      // that the values are scaled by; of int32: IntegerPart
    std::uint16_t value_count = 0;  // 0: a round without values
};

// A worker makes one claim in a round at most; the first that holds, from below.
enum class Claim : std::uint8_t {
    kNone,
    kScale,      // the exponent that the values are scaled by is its own
    kTooLarge,   // its values do not fit the guessed exponent, or might wrap: it sends zeros
    kNonFinite,  // it holds Inf or NaN
};

// How many workers may have made each claim, if the result is right.
struct ClaimBounds {
    struct Range {
        std::uint32_t least = 0;
        std::uint32_t most = 0;
    };
    Range scale;
    Range too_large;
    Range non_finite;
};

class SumCheck {
  public:
    // rank, n = workers: of those whose checks a result sums up. `values`: of a packet.
    SumCheck(VerifyMode mode, const SecretKey &key, std::uint32_t epoch, std::uint32_t rank,
             std::uint32_t workers, std::size_t values);

    bool is_on() const { return mode_ != VerifyMode::kOff; }

    struct Contribution {
        std::uint32_t check = 0;     // the header's field
        std::uint64_t expected = 0;  // for verify() of the round's result
    };
    // `values`: tag.value_count of them, as on the wire; null: this worker gives none. The same tag
    // must never come again with other values: two checks with the same pads tell their difference.
    Contribution contribute(const RoundTag &tag, Claim claim, const std::uint8_t *values) const;

    // Whether values and check of a result belong together.
    bool verify(const RoundTag &tag, const ClaimBounds &claims, std::uint64_t expected,
                const std::uint8_t *values, std::uint32_t check) const;

    // Those that some of the values use besides signs: WeighKernels.
    std::uint32_t used_bits(const std::uint8_t *values, std::size_t count) const {
        return kernels_.used_bits(values, count);
    }

  private:
    std::uint64_t weighed(const RoundTag &tag, const std::uint8_t *values) const;
    std::uint64_t worth(Claim claim) const { return worth_[static_cast<std::size_t>(claim)]; }
    SipWords words(const RoundTag &tag, std::uint32_t which) const;
    bool agrees_with_some(std::uint64_t sum, const ClaimBounds::Range &scales,
                          std::uint32_t check) const;

    struct Claims {  // so many, of one kind
        std::uint64_t worth;
        std::uint32_t count;
    };

    VerifyMode mode_;
    SipHash hash_;
    std::uint32_t epoch_;
    std::uint32_t rank_;
    std::uint32_t workers_;
    const WeighKernels &kernels_;
    std::vector<std::uint32_t> low_;  // of the weights, all odd: no single bit is lost on them
    std::vector<std::uint32_t> high_;
    std::uint64_t bias_ = 0;       // what the kernels' sum has too much
    std::uint64_t worth_[4] = {};  // of a claim
    std::vector<Claims> scales_;   // of a scale, 0 to n, by their worth; few workers need none
};

}  // namespace ina::host
