#include "host/core/sum_check.hpp"

#include <algorithm>

#include "host/core/digest.hpp"

namespace ina::host {
namespace {

// What a pseudo-random number is for, apart from f(w): w is below 1024.
constexpr std::uint32_t kResultPad = 0xffff;  // r
constexpr std::uint32_t kWeight = 0xfffe;
constexpr std::uint32_t kClaim = 0xfffd;

// Up to so many workers, numbers of claims are tried one by one.
constexpr std::uint32_t kFewWorkers = 32;

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
    if (workers_ <= kFewWorkers) return;
    for (std::uint32_t claims = 0; claims <= workers_; ++claims) {
        scales_.push_back({claims * worth(Claim::kScale), claims});
    }
    std::sort(scales_.begin(), scales_.end(),
              [](const Claims &a, const Claims &b) { return a.worth < b.worth; });
}

SipWords SumCheck::words(const RoundTag &tag, std::uint32_t which) const {
    const std::uint64_t said =
        std::uint64_t{epoch_} << 32 | (which & 0xff) << 24 | std::uint32_t{tag.exponent} << 16 |
        std::uint32_t{static_cast<std::uint8_t>(tag.type)} << 12 | tag.value_count;
    // A job of 2^56 packets has sent 2^62 bytes or more: the number's upper byte is free.
    return {tag.number | std::uint64_t{which >> 8} << 56, said, tag.digest};
}

std::uint64_t SumCheck::weighed(const RoundTag &tag, const std::uint8_t *values) const {
    const std::size_t count = tag.value_count;
    if (count == 0 || values == nullptr) return 0;
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
    made.check = static_cast<std::uint32_t>(sum >> 32);
    return made;
}

bool SumCheck::verify(const RoundTag &tag, const ClaimBounds &claims, std::uint64_t expected,
                      const std::uint8_t *values, std::uint32_t check) const {
    const std::uint64_t base = weighed(tag, values) + expected;
    for (std::uint32_t i = claims.non_finite.least; i <= claims.non_finite.most; ++i) {
        for (std::uint32_t j = claims.too_large.least; j <= claims.too_large.most; ++j) {
            if (i + j > workers_) break;
            const std::uint64_t sum =
                base + i * worth(Claim::kNonFinite) + j * worth(Claim::kTooLarge);
            const std::uint32_t most = std::min(claims.scale.most, workers_ - i - j);
            if (agrees_with_some(sum, {claims.scale.least, most}, check)) return true;
        }
    }
    return false;
}

// Whether the sum is right for some number of claims of a scale. Of many workers' NaN each number
// of claims of either kind may be: tried one by one, that would be half a million.
bool SumCheck::agrees_with_some(std::uint64_t sum, const ClaimBounds::Range &scales,
                                std::uint32_t check) const {
    if (workers_ <= kFewWorkers) {
        for (std::uint32_t k = scales.least; k <= scales.most; ++k) {
            const std::uint64_t whole = sum + k * worth(Claim::kScale);
            if (static_cast<std::uint32_t>(whole >> 32) - check < workers_) return true;
        }
        return false;
    }
    const std::uint64_t first = (std::uint64_t{check} << 32) - sum;
    auto next = std::lower_bound(scales_.begin(), scales_.end(), first,
                                 [](const Claims &a, std::uint64_t b) { return a.worth < b; });
    for (std::size_t tried = 0; tried < scales_.size(); ++tried, ++next) {
        if (next == scales_.end()) next = scales_.begin();
        if (next->worth - first >= std::uint64_t{workers_} << 32) return false;
        if (next->count >= scales.least && next->count <= scales.most) return true;
    }
    return false;
}

}  // namespace ina::host
