// float16 blocks by the processor's own conversion instructions, a vector at a time. They round as
// Float16 in float_formats.hpp does (half even; from 65520 on Inf; subnormals kept) in a third of
// the instructions, or fewer, that integer arithmetic takes.
//
// A function converts the whole vectors at a block's beginning and returns how many values those
// hold; the rest is the caller's. NAME says for which instruction set: INA_HALF_VECTORS lists it.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#if !defined(__clang__)
// GCC 12 warns of its own header's _mm512_undefined_ps() (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#define INA_X86_KERNELS 1
#define INA_AVX2 __attribute__((target("avx2,f16c")))
#define INA_AVX512_SETS "avx512f,avx512bw,avx512vl,avx512dq"
#if defined(__clang__)
// Knows no preferred width there, and would ignore the attribute whole.
#define INA_AVX512 __attribute__((target(INA_AVX512_SETS)))
#else
#define INA_AVX512 __attribute__((target(INA_AVX512_SETS ",prefer-vector-width=512")))
#endif
#elif defined(__aarch64__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>

#define INA_NEON_KERNELS 1
#endif

namespace ina::host {

// The baseline, on every processor: no such instructions.
namespace generic {

inline std::size_t quantize_halves(const std::uint8_t *, std::size_t, float, std::uint8_t *) {
    return 0;
}
inline std::size_t dequantize_halves(const std::uint8_t *, std::size_t, float, float,
                                     std::uint8_t *) {
    return 0;
}

}  // namespace generic

#if defined(INA_X86_KERNELS)

inline bool has_avx2() {
    // Compilers before GCC 11 do not know __builtin_cpu_supports("f16c").
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
           (ecx & bit_F16C) != 0;
}

inline bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

namespace avx2 {

INA_AVX2 inline __m256i byte_swapped(__m256i words) {
    const __m256i order = _mm256_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,  //
                                          12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    return _mm256_shuffle_epi8(words, order);
}

INA_AVX2 inline std::size_t quantize_halves(const std::uint8_t *halves, std::size_t elems,
                                            float scale, std::uint8_t *wire) {
    const __m256 by = _mm256_set1_ps(scale);
    std::size_t done = 0;
    for (; done + 8 <= elems; done += 8) {
        const auto *from = reinterpret_cast<const __m128i *>(halves + done * 2);
        const __m256 values = _mm256_cvtph_ps(_mm_loadu_si128(from));
        const __m256i integers = _mm256_cvtps_epi32(_mm256_mul_ps(values, by));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(wire + done * 4), byte_swapped(integers));
    }
    return done;
}

INA_AVX2 inline std::size_t dequantize_halves(const std::uint8_t *wire, std::size_t elems,
                                              float inverse_scale, float one_over_divisor,
                                              std::uint8_t *halves) {
    const __m256 by = _mm256_set1_ps(inverse_scale);
    const __m256 part = _mm256_set1_ps(one_over_divisor);
    std::size_t done = 0;
    for (; done + 8 <= elems; done += 8) {
        const auto *from = reinterpret_cast<const __m256i *>(wire + done * 4);
        const __m256 sums = _mm256_cvtepi32_ps(byte_swapped(_mm256_loadu_si256(from)));
        const __m256 values = _mm256_mul_ps(_mm256_mul_ps(sums, by), part);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(halves + done * 2),
                         _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
    }
    return done;
}

}  // namespace avx2

namespace avx512 {

INA_AVX512 inline __m512i byte_swapped(__m512i words) {
    const __m128i order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    return _mm512_shuffle_epi8(words, _mm512_broadcast_i32x4(order));
}

INA_AVX512 inline std::size_t quantize_halves(const std::uint8_t *halves, std::size_t elems,
                                              float scale, std::uint8_t *wire) {
    const __m512 by = _mm512_set1_ps(scale);
    std::size_t done = 0;
    for (; done + 16 <= elems; done += 16) {
        const auto *from = reinterpret_cast<const __m256i *>(halves + done * 2);
        const __m512 values = _mm512_cvtph_ps(_mm256_loadu_si256(from));
        const __m512i integers = _mm512_cvtps_epi32(_mm512_mul_ps(values, by));
        _mm512_storeu_si512(wire + done * 4, byte_swapped(integers));
    }
    return done;
}

INA_AVX512 inline std::size_t dequantize_halves(const std::uint8_t *wire, std::size_t elems,
                                                float inverse_scale, float one_over_divisor,
                                                std::uint8_t *halves) {
    const __m512 by = _mm512_set1_ps(inverse_scale);
    const __m512 part = _mm512_set1_ps(one_over_divisor);
    std::size_t done = 0;
    for (; done + 16 <= elems; done += 16) {
        const __m512i words = _mm512_loadu_si512(wire + done * 4);
        const __m512 sums = _mm512_cvtepi32_ps(byte_swapped(words));
        const __m512 values = _mm512_mul_ps(_mm512_mul_ps(sums, by), part);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(halves + done * 2),
                            _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
    }
    return done;
}

}  // namespace avx512

#elif defined(INA_NEON_KERNELS)

namespace neon {

inline std::size_t quantize_halves(const std::uint8_t *halves, std::size_t elems, float scale,
                                   std::uint8_t *wire) {
    std::size_t done = 0;
    for (; done + 4 <= elems; done += 4) {
        const float16x4_t packed = vreinterpret_f16_u8(vld1_u8(halves + done * 2));
        const float32x4_t scaled = vmulq_n_f32(vcvt_f32_f16(packed), scale);
        const int32x4_t integers = vcvtnq_s32_f32(scaled);
        vst1q_u8(wire + done * 4, vrev32q_u8(vreinterpretq_u8_s32(integers)));
    }
    return done;
}

inline std::size_t dequantize_halves(const std::uint8_t *wire, std::size_t elems,
                                     float inverse_scale, float one_over_divisor,
                                     std::uint8_t *halves) {
    std::size_t done = 0;
    for (; done + 4 <= elems; done += 4) {
        const int32x4_t sums = vreinterpretq_s32_u8(vrev32q_u8(vld1q_u8(wire + done * 4)));
        const float32x4_t scaled = vmulq_n_f32(vcvtq_f32_s32(sums), inverse_scale);
        const float16x4_t packed = vcvt_f16_f32(vmulq_n_f32(scaled, one_over_divisor));
        vst1_u8(halves + done * 2, vreinterpret_u8_f16(packed));
    }
    return done;
}

}  // namespace neon

#endif

}  // namespace ina::host
