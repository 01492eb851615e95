#include "host/core/sum_check.hpp"

#include "host/core/digest.hpp"

namespace ina::host {
namespace {

// What a pseudo-random number is for, apart from f(w): w is below 32.
constexpr std::uint32_t kResultPad = 0xff;  // r
constexpr std::uint32_t kWeight = 0xfe;
constexpr std::uint32_t kClaim = 0xfd;

}  // namespace

SumCheck::SumCheck(VerifyMode mode, const SecretKey &key, std::uint32_t epoch, std::uint32_t rank,
                   std::uint32_t workers, std::size_t values)
    : mode_(mode), hash_(mode == VerifyMode::kKeyed ? key : SecretKey{}), epoch_(epoch),
      rank_(rank), workers_(workers), kernels_(best_weigh_kernels()) {
    if (!is_on()) return;
    low_.reserve(values);
    high_.reserve(values);
    RoundTag tag;
    for (std::size_t i = 0; i < values; ++i) {
        tag.number = i;
        const std::uint64_t weight = hash_.of(words(tag, kWeight)) | 1;
        low_.push_back(static_cast<std::uint32_t>(weight));
        high_.push_back(static_cast<std::uint32_t>(weight >> 32));
        bias_ += weight << 31;
    }
    for (std::uint64_t claim = 1; claim < 4; ++claim) {
        tag.number = claim;
        worth_[claim] = hash_.of(words(tag, kClaim)) | 1;
    }
}

SipWords SumCheck::words(const RoundTag &tag, std::uint32_t which) const {
    const std::uint64_t said =
        std::uint64_t{epoch_} << 32 | which << 24 | std::uint32_t{tag.exponent} << 16 |
        std::uint32_t{static_cast<std::uint8_t>(tag.type)} << 12 | tag.value_count;
    return {tag.number, said, tag.digest};
}

std::uint64_t SumCheck::weighed(const RoundTag &tag, const std::uint8_t *values) const {
    const std::size_t count = tag.value_count;
    if (count == 0) return 0;
    if (!is_float(tag.type)) return kernels_.narrow(values, low_.data(), count);
    return kernels_.wide(values, low_.data(), high_.data(), count) - bias_;
}

SumCheck::Contribution SumCheck::contribute(const RoundTag &tag, Claim claim,
                                            const std::uint8_t *values) const {
    Contribution made;
    std::uint64_t sum = weighed(tag, values) + worth(claim);
    if (mode_ == VerifyMode::kAccidents) {
        const SipWords said = words(tag, 0);
        const std::uint64_t pad = mix(said[0] ^ mix(said[1] ^ mix(said[2]))) | 1;
        // Each rank adds it another number of times, so that none can stand for two.
        sum += (rank_ + 1) * pad;
        made.expected = std::uint64_t{workers_} * (workers_ + 1) / 2 * pad;
    } else {
        const std::uint32_t next = rank_ + 1 < workers_ ? rank_ + 1 : 0;
        const auto [own, others, result] = hash_.of(
            std::array<SipWords, 3>{words(tag, rank_), words(tag, next), words(tag, kResultPad)});
        sum += own - others + (rank_ == 0 ? result : 0);
        made.expected = result;
    }
    made.check = static_cast<std::uint32_t>(is_float(tag.type) ? sum >> 32 : sum);
    return made;
}

bool SumCheck::verify(const RoundTag &tag, const ClaimBounds &claims, std::uint64_t expected,
                      const std::uint8_t *values, std::uint32_t check) const {
    const bool wide = is_float(tag.type);
    const std::uint64_t base = weighed(tag, values) + expected;
    const auto agrees = [&](std::uint64_t sum) {
        if (!wide) return static_cast<std::uint32_t>(sum) == check;
        return static_cast<std::uint32_t>(sum >> 32) - check < workers_;
    };
    for (std::uint32_t i = claims.non_finite.least; i <= claims.non_finite.most; ++i) {
        for (std::uint32_t j = claims.too_large.least; j <= claims.too_large.most; ++j) {
            if (i + j > workers_) break;
            for (std::uint32_t k = claims.scale.least; k <= claims.scale.most; ++k) {
                if (i + j + k > workers_) break;
                if (agrees(base + i * worth(Claim::kNonFinite) + j * worth(Claim::kTooLarge) +
                           k * worth(Claim::kScale))) {
                    return true;
                }
            }
        }
    }
    return false;
}

}  // namespace ina::host
