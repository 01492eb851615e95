/* CRC-32 (ISO-HDLC: Ethernet's, zlib's, RoCE's ICRC) of bytes in memory, by what the processor has.
 *
 * Folding is after V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction" (Intel, 2009); tables after M. E. Kounavis and F. L. Berry, "A Systematic Approach
 * to Building High Performance, Software-based, CRC Generators" (ISCC 2005).
 */
#ifndef INA_CRC_H
#define INA_CRC_H

#include "ina_base.h"

#ifdef __ARM_FEATURE_CRC32
#include <arm_acle.h>
#endif
#if defined __PCLMUL__ && defined __SSE4_1__
#include <immintrin.h>
#define INA_CRC_FOLDS 1
#endif

enum { INA_CRC_SLICES = 16 };
static uint32_t ina_crc_table[INA_CRC_SLICES][256];

/* Of a byte with so many zeros behind it. Whoever comes first fills the table; who comes at the
 * same time writes the same. */
static void ina_crc_fill(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        __atomic_store_n(&ina_crc_table[0][byte], crc, __ATOMIC_RELAXED);
    }
    for (uint32_t slice = 1; slice < INA_CRC_SLICES; slice++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            const uint32_t before = ina_crc_table[slice - 1][byte];
            const uint32_t crc = before >> 8 ^ ina_crc_table[0][before & 0xff];
            __atomic_store_n(&ina_crc_table[slice][byte], crc, __ATOMIC_RELAXED);
        }
}

/* 16 bytes, or fewer than 16, at a time. */
static uint32_t ina_crc_by_table(uint32_t crc, const uint8_t *data, size_t size) {
    static uint32_t filled;
    if (INA_UNLIKELY(!__atomic_load_n(&filled, __ATOMIC_ACQUIRE))) {
        ina_crc_fill();
        __atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
    }
    for (; size >= INA_CRC_SLICES; size -= INA_CRC_SLICES, data += INA_CRC_SLICES) {
        uint8_t block[INA_CRC_SLICES];
        memcpy(block, data, sizeof block);
        for (int i = 0; i < 4; i++) block[i] ^= (uint8_t)(crc >> 8 * i);
        crc = 0;
        for (int i = 0; i < INA_CRC_SLICES; i++)
            crc ^= ina_crc_table[INA_CRC_SLICES - 1 - i][block[i]];
    }
    for (; size; size--, data++) crc = crc >> 8 ^ ina_crc_table[0][(crc ^ *data) & 0xff];
    return crc;
}

#ifdef INA_CRC_FOLDS
INA_INLINE __m128i ina_crc_fold(__m128i sum, __m128i by, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(sum, by, 0x00);
    const __m128i high = _mm_clmulepi64_si128(sum, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

INA_INLINE __m128i ina_crc_load(const uint8_t *at) { return _mm_loadu_si128((const __m128i *)at); }

/* 64 bytes or more, of which those that are no whole 16 are left. What is folded has the remainder
 * of all of it, and is 16 bytes. Constants: x^544, x^480 and x^160, x^96 modulo the polynomial,
 * each with its bits in reverse. */
static uint32_t ina_crc_by_folding(uint32_t crc, const uint8_t **data, size_t *size) {
    const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const uint8_t *at = *data;
    size_t left = *size;
    __m128i sums[4];
    for (int i = 0; i < 4; i++) sums[i] = ina_crc_load(at + 16 * i);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128((int)crc));
    for (at += 64, left -= 64; left >= 64; at += 64, left -= 64)
        for (int i = 0; i < 4; i++)
            sums[i] = ina_crc_fold(sums[i], by_four, ina_crc_load(at + 16 * i));
    __m128i sum = sums[0];
    for (int i = 1; i < 4; i++) sum = ina_crc_fold(sum, by_one, sums[i]);
    for (; left >= 16; at += 16, left -= 16) sum = ina_crc_fold(sum, by_one, ina_crc_load(at));
    uint8_t rest[16];
    _mm_storeu_si128((__m128i *)rest, sum);
    *data = at;
    *size = left;
    return ina_crc_by_table(0, rest, sizeof rest);
}
#endif

/* Goes on from `crc`: of the first bytes 0xffffffff; what comes of the last is complemented. */
INA_INLINE uint32_t ina_crc32(uint32_t crc, const uint8_t *data, size_t size) {
#ifdef __ARM_FEATURE_CRC32
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        crc = __crc32d(crc, word);
    }
    for (; size; size--, data++) crc = __crc32b(crc, *data);
    return crc;
#else
#ifdef INA_CRC_FOLDS
    if (size >= 64) crc = ina_crc_by_folding(crc, &data, &size);
#endif
    return ina_crc_by_table(crc, data, size);
#endif
}

#endif /* INA_CRC_H */
