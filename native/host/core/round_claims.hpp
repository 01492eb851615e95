// What a lane's round binds its check to, and which claims workers make in it.
#pragma once

#include <cstdint>

#include "common/ina_wire.hpp"
#include "host/core/lane.hpp"
#include "host/core/sum_check.hpp"

namespace ina::host {

// exponent: of the packet, or of a result that fits it. value_count: of the round's packets that
// have values.
inline RoundTag round_tag(const Lane &lane, std::uint8_t exponent, std::uint16_t value_count) {
    return {lane.number, lane.tensor->digest, lane.tensor->request.type, exponent, value_count};
}

// Of the packet that is being written: `header` has its flags and, for a guess, its own exponent;
// lane.announced is what the worker has said of the chunk's exponent before.
inline Claim claim_of(const Lane &lane, const wire::Header &header) {
    if (!lane.has_values()) return Claim::kNone;
    if (!is_float(lane.tensor->request.type)) {
        return (header.flags & wire::kFlagOverflow) != 0 ? Claim::kTooLarge : Claim::kNone;
    }
    if ((header.flags & wire::kFlagNonFinite) != 0) return Claim::kNonFinite;
    const std::uint8_t own = lane.is_guess() ? header.next_exponent : lane.announced;
    if (own > lane.exponent) return Claim::kTooLarge;
    return own == lane.exponent ? Claim::kScale : Claim::kNone;
}

// Of a result that fits the lane's packet.
inline ClaimBounds claims_in(const Lane &lane, const wire::Header &header, std::uint32_t workers) {
    ClaimBounds bounds;
    if (!lane.has_values()) return bounds;
    if (!is_float(lane.tensor->request.type)) {
        const bool too_large = lane.is_guess() && (header.flags & wire::kFlagOverflow) != 0;
        if (too_large) bounds.too_large = {1, workers};
        return bounds;
    }
    const bool non_finite = (header.flags & wire::kFlagNonFinite) != 0;
    // Who claims that does not claim a scale: then it may be that nobody does.
    const std::uint32_t someone = non_finite ? 0 : 1;
    if (non_finite) bounds.non_finite = {1, workers};
    if (!lane.is_guess()) {
        const bool all_zero = lane.exponent == wire::kExponentAllZero;
        bounds.scale = {all_zero && !non_finite ? workers : someone, workers};
        return bounds;
    }
    if (header.next_exponent > lane.exponent) {
        bounds.too_large = {someone, workers};
        bounds.scale = {0, workers};
    } else if (header.next_exponent == lane.exponent) {
        bounds.scale = {someone, workers};
    }
    return bounds;
}

}  // namespace ina::host
