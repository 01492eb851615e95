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
#define INA_UNROLL _Pragma("GCC unroll 32")

enum { INA_CRC_SLICES = 16, INA_CRC_MOST_PATCHED = 128 };
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

/* The CRC of 16 bytes, gone on from 0: x^32 times them, modulo the polynomial. By x^96 and x^64
 * they are folded to 12 and to 8 bytes; the quotient of those is found with x^64 over the
 * polynomial. */
INA_INLINE uint32_t ina_crc_of_fold(__m128i sum) {
    const __m128i by = _mm_set_epi64x(0x163cd6124, 0x0ccaa009e);
    const __m128i divisor = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i first = _mm_set_epi32(0, 0, 0, -1);
    const __m128i twelve =
        _mm_xor_si128(_mm_clmulepi64_si128(sum, by, 0x00), _mm_srli_si128(sum, 8));
    const __m128i eight = _mm_xor_si128(
        _mm_clmulepi64_si128(_mm_and_si128(twelve, first), by, 0x10), _mm_srli_si128(twelve, 4));
    const __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(eight, first), divisor, 0x10);
    const __m128i whole = _mm_clmulepi64_si128(_mm_and_si128(quotient, first), divisor, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(eight, whole), 1);
}

/* What has the remainder of `sum` and of all whole 16 bytes behind it; those are then gone from
 * *data. Constants: x^544, x^480 and x^160, x^96 modulo the polynomial, each with its bits in
 * reverse. */
INA_INLINE __m128i ina_crc_fold_all(__m128i sum, const uint8_t **data, size_t *size) {
    const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const uint8_t *at = *data;
    size_t left = *size;
    if (left >= 48) {
        __m128i sums[4] = {sum};
        for (int i = 1; i < 4; i++) sums[i] = ina_crc_load(at + 16 * (i - 1));
        for (at += 48, left -= 48; left >= 64; at += 64, left -= 64)
            for (int i = 0; i < 4; i++)
                sums[i] = ina_crc_fold(sums[i], by_four, ina_crc_load(at + 16 * i));
        sum = sums[0];
        for (int i = 1; i < 4; i++) sum = ina_crc_fold(sum, by_one, sums[i]);
    }
    for (; left >= 16; at += 16, left -= 16) sum = ina_crc_fold(sum, by_one, ina_crc_load(at));
    *data = at;
    *size = left;
    return sum;
}

/* 64 bytes or more, of which those that are no whole 16 are left. */
static uint32_t ina_crc_by_folding(uint32_t crc, const uint8_t **data, size_t *size) {
    const __m128i sum = _mm_xor_si128(ina_crc_load(*data), _mm_cvtsi32_si128((int)crc));
    *data += 16;
    *size -= 16;
    return ina_crc_of_fold(ina_crc_fold_all(sum, data, size));
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

/* The same, of whose first bytes some are others: of `patched` of them, a multiple of 16, count
 * only the bits that `keep` has, and those of `ones` are set. */
INA_INLINE uint32_t ina_crc32_patched(uint32_t crc, const uint8_t *data, size_t size,
                                      const uint8_t *keep, const uint8_t *ones, size_t patched) {
    uint8_t head[INA_CRC_MOST_PATCHED];
#ifdef INA_CRC_FOLDS
    const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i sum = _mm_cvtsi32_si128((int)crc);
    for (size_t i = 0; i < patched; i += 16) {
        __m128i block = _mm_and_si128(ina_crc_load(data + i), ina_crc_load(keep + i));
        block = _mm_or_si128(block, ina_crc_load(ones + i));
        sum = i ? ina_crc_fold(sum, by_one, block) : _mm_xor_si128(sum, block);
    }
    data += patched;
    size -= patched;
    (void)head;
    sum = ina_crc_fold_all(sum, &data, &size);
    return ina_crc_by_table(ina_crc_of_fold(sum), data, size);
#else
    for (size_t i = 0; i < patched; i++) head[i] = (data[i] & keep[i]) | ones[i];
    return ina_crc32(ina_crc32(crc, head, patched), data + patched, size - patched);
#endif
}

/* What is known of bytes by their number alone: what those in front of them count for. */
typedef struct {
    uint64_t near, far; /* to fold 16 bytes over them */
    uint32_t power;     /* x^(8 * size), bits in reverse */
} ina_crc_distance;

/* What `crc` becomes by zeros: a product modulo the polynomial. */
INA_INLINE uint32_t ina_crc_by_zeros(uint32_t crc, uint32_t power) {
    uint32_t product = 0;
    for (int bit = 0; bit < 32; bit++) {
        product ^= -(power >> (31 - bit) & 1) & crc;
        crc = crc >> 1 ^ (-(crc & 1) & 0xedb88320u);
    }
    return product;
}

/* Of a header, and of bytes behind it whose own CRC, gone on from 0, is known: `behind`. The header
 * is in words, which stay in registers: a vector that is read where they were just written waits
 * for all that was written before. Their number is a constant. */
INA_INLINE uint32_t ina_crc32_headed(uint32_t crc, const uint64_t *head, size_t words,
                                     const ina_crc_distance *over, uint32_t behind) {
#ifdef INA_CRC_FOLDS
    if (words >= 2 && words % 2 == 0) {
        const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
        const __m128i by = _mm_set_epi64x((long long)over->near, (long long)over->far);
        __m128i sum = _mm_cvtsi32_si128((int)crc);
        INA_UNROLL
        for (size_t i = 0; i < words; i += 2) {
            const __m128i block = _mm_set_epi64x((long long)head[i + 1], (long long)head[i]);
            sum = i ? ina_crc_fold(sum, by_one, block) : _mm_xor_si128(sum, block);
        }
        return ina_crc_of_fold(ina_crc_fold(sum, by, _mm_setzero_si128())) ^ behind;
    }
#endif
    crc = ina_crc32(crc, (const uint8_t *)head, 8 * words);
    return ina_crc_by_zeros(crc, over->power) ^ behind;
}

/* Of values that are kept somewhere, else as they stand in the packet; gone on from 0. */
#define INA_CRC_OF_ARRAY(width)                                                                    \
    static inline uint32_t ina_crc32_of_array_##width(const uint##width##_t *kept_in,              \
                                                      const uint8_t *wire, size_t count) {         \
        if (!kept_in) return ina_crc32(0, wire, width / 8 * count);                                \
        uint8_t packed[1024];                                                                      \
        uint32_t crc = 0;                                                                          \
        for (size_t part; count; count -= part, kept_in += part) {                                 \
            part = ina_min_u64(count, sizeof packed / (width / 8));                                \
            ina_store_array_##width(packed, kept_in, part);                                        \
            crc = ina_crc32(crc, packed, width / 8 * part);                                        \
        }                                                                                          \
        return crc;                                                                                \
    }
INA_CRC_OF_ARRAY(8)
INA_CRC_OF_ARRAY(16)
INA_CRC_OF_ARRAY(32)
INA_CRC_OF_ARRAY(64)

#endif /* INA_CRC_H */
