// IEEE float formats of tensors: conversion to and from float32 in integer arithmetic only, without
// branches, so that compilers vectorise it and every instruction set gives the same bits.
#pragma once

#include <cstdint>
#include <cstring>

namespace ina::host {

#if defined(__GNUC__)
#define INA_ALWAYS_INLINE [[gnu::always_inline]] inline
#else
#define INA_ALWAYS_INLINE inline
#endif

INA_ALWAYS_INLINE float float_of_bits(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

INA_ALWAYS_INLINE std::uint32_t bits_of_float(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// A format has: Bits, the storage type; kMagnitude, all bits but the sign; kInfinity, the pattern
// of +Inf (larger magnitudes are NaN); kNan, the quiet NaN that a non-finite block turns into.

struct Float32 {
    using Bits = std::uint32_t;
    static constexpr Bits kMagnitude = 0x7fffffff;
    static constexpr Bits kInfinity = 0x7f800000;
    static constexpr Bits kNan = 0x7fc00000;
    INA_ALWAYS_INLINE static float to_float(Bits bits) { return float_of_bits(bits); }
    INA_ALWAYS_INLINE static Bits from_float(float value) { return bits_of_float(value); }
};

struct Bfloat16 {
    using Bits = std::uint16_t;
    static constexpr Bits kMagnitude = 0x7fff;
    static constexpr Bits kInfinity = 0x7f80;
    static constexpr Bits kNan = 0x7fc0;
    INA_ALWAYS_INLINE static float to_float(Bits bits) {
        return float_of_bits(std::uint32_t{bits} << 16);
    }
    // Round half even. The carry turns the largest values into Inf. Not for NaN.
    INA_ALWAYS_INLINE static Bits from_float(float value) {
        const std::uint32_t bits = bits_of_float(value);
        return static_cast<Bits>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
};

struct Float16 {
    using Bits = std::uint16_t;
    static constexpr Bits kMagnitude = 0x7fff;
    static constexpr Bits kInfinity = 0x7c00;
    static constexpr Bits kNan = 0x7e00;
    // The half's exponent and fraction, read as a float32, are the value times 2^-112: one exact
    // multiplication puts normal and subnormal halves right. Inf and NaN are not handled: blocks
    // that hold one are never converted.
    INA_ALWAYS_INLINE static float to_float(Bits bits) {
        const std::uint32_t magnitude = std::uint32_t{bits & 0x7fffu} << 13;
        const float value = float_of_bits(magnitude) * float_of_bits((127u + 112u) << 23);
        return float_of_bits(bits_of_float(value) | std::uint32_t{bits & 0x8000u} << 16);
    }
    // Round half even; from 65520 on Inf. Not for NaN.
    INA_ALWAYS_INLINE static Bits from_float(float value) {
        const std::uint32_t bits = bits_of_float(value);
        const auto magnitude = static_cast<std::int32_t>(bits & 0x7fffffff);
        // Normal halves: re-bias the exponent and round away 13 fraction bits; a carry is right.
        const std::int32_t normal =
            (magnitude - (112 << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
        // Below 2^-14: adding 0.5 leaves the value in units of 2^-24 (the half's smallest
        // subnormal) in the fraction's low bits, rounded by the addition.
        const float shifted = float_of_bits(static_cast<std::uint32_t>(magnitude)) + 0.5f;
        const auto subnormal = static_cast<std::int32_t>(bits_of_float(shifted)) - 0x3f000000;
        // Masks (-1: yes), for compilers make branches of nested conditions.
        const std::int32_t is_small = (magnitude - (113 << 23)) >> 31;
        const std::int32_t is_finite = (magnitude - (143 << 23)) >> 31;
        const std::int32_t finite = (subnormal & is_small) | (normal & ~is_small);
        const std::int32_t half = (finite & is_finite) | (kInfinity & ~is_finite);
        return static_cast<Bits>(static_cast<std::uint32_t>(half) | ((bits >> 16) & 0x8000));
    }
};

}  // namespace ina::host
