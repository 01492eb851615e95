/* Bits and bytes for generated pipelines: big-endian loads and stores, shifts, saturation. */
#ifndef INA_BASE_H
#define INA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifndef __bpf__ /* where there is no C library */
#include <stdlib.h>
#include <string.h>
#endif

#ifndef INA_INLINE /* who compiles without optimisation does better without it */
#define INA_INLINE static inline __attribute__((always_inline))
#endif
#define INA_APART static __attribute__((noinline)) /* keeps the registers of its caller free */
#define INA_LIKELY(x) __builtin_expect(!!(x), 1)
#define INA_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Makes the compiler hold x itself, not what it was made of: that frees registers. */
#define INA_ONE_REGISTER(x) __asm__("" : "+r"(x))
#define INA_MASK(bits) ((bits) >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (bits)) - 1)

typedef unsigned __int128 ina_u128;
typedef __int128 ina_i128;

#ifdef __bpf__ /* a struct of more than some words would be a call of memset, which is not there   \
                */
#define INA_CLEAR(x) memset(&(x), 0, sizeof(x))
#else
#define INA_CLEAR(x) ((x) = (__typeof__(x)){0})
#endif

/* Before a loop whose turns have nothing to do with each other. */
#ifdef __bpf__ /* a turn of its own for each value: more jumps than work */
#define INA_ANY_ORDER _Pragma("clang loop unroll_count(16)")
#else
#define INA_ANY_ORDER _Pragma("GCC ivdep")
#endif

/* One access of a size that the processor has, at any address. Clang takes memcpy apart into bytes
 * for BPF, which knows of no address that it is aligned. */
#ifdef __bpf__
#define INA_READ(type, to, from) ((to) = *(const type *)(from))
#define INA_WRITE(type, to, from) (*(type *)(to) = (from))
#define INA_ANYWHERE __attribute__((may_alias))
#else
#define INA_READ(type, to, from) memcpy(&(to), (from), sizeof(type))
#define INA_WRITE(type, to, from) memcpy((to), &(from), sizeof(type))
#define INA_ANYWHERE __attribute__((aligned(1), may_alias))
#endif

/* The same truth value, but the compiler's front end cannot merge it with its neighbours. */
INA_INLINE bool ina_test(bool truth) { return truth; }

INA_INLINE ina_u128 ina_u128_of(uint64_t high, uint64_t low) { return (ina_u128)high << 64 | low; }

/* Reads 1, 2, 4 or 8 bytes, network byte order. n is a constant: this is a load and a swap. */
INA_INLINE uint64_t ina_load_once(const uint8_t *from, size_t n) {
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    switch (n) {
        case 8: INA_READ(uint64_t, eight, from); return __builtin_bswap64(eight);
        case 4: INA_READ(uint32_t, four, from); return __builtin_bswap32(four);
        case 2: INA_READ(uint16_t, two, from); return __builtin_bswap16(two);
        case 1: return from[0];
        default: return 0;
    }
}

INA_INLINE void ina_store_once(uint8_t *to, size_t n, uint64_t value) {
    const uint64_t eight = __builtin_bswap64(value);
    const uint32_t four = __builtin_bswap32((uint32_t)value);
    const uint16_t two = __builtin_bswap16((uint16_t)value);
    switch (n) {
        case 8: INA_WRITE(uint64_t, to, eight); break;
        case 4: INA_WRITE(uint32_t, to, four); break;
        case 2: INA_WRITE(uint16_t, to, two); break;
        case 1: to[0] = (uint8_t)value; break;
        default: break;
    }
}

/* Reads any n <= 8 bytes: 4, then 2, then 1 of those that are left. */
INA_INLINE uint64_t ina_load(const uint8_t *from, size_t n) {
    if (n == 8) return ina_load_once(from, 8);
    uint64_t value = 0;
    if (n & 4) value = ina_load_once(from, 4);
    if (n & 2) value = value << 16 | ina_load_once(from + (n & 4), 2);
    if (n & 1) value = value << 8 | from[n & 6];
    return value;
}

/* The same bytes unswapped: the first is the lowest. n is 1, 2, 4 or 8. */
INA_INLINE uint64_t ina_load_raw(const uint8_t *from, size_t n) {
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    switch (n) { /* little-endian hosts only, as all of this */
        case 8: INA_READ(uint64_t, eight, from); return eight;
        case 4: INA_READ(uint32_t, four, from); return four;
        case 2: INA_READ(uint16_t, two, from); return two;
        case 1: return from[0];
        default: return 0;
    }
}

/* The low n bytes in reverse order; what is above them must be 0. */
INA_INLINE uint64_t ina_reverse(uint64_t value, size_t n) {
    if (n == 1) return value;
    if (n == 2) return __builtin_bswap16((uint16_t)value);
    if (n == 4) return __builtin_bswap32((uint32_t)value);
    return __builtin_bswap64(value) >> 8 * (8 - n);
}

/* Writes the low n <= 8 bytes of value, network byte order. */
INA_INLINE void ina_store(uint8_t *to, size_t n, uint64_t value) {
    if (n == 8) {
        ina_store_once(to, 8, value);
        return;
    }
    if (n & 4) ina_store_once(to, 4, value >> 8 * (n & 3));
    if (n & 2) ina_store_once(to + (n & 4), 2, value >> 8 * (n & 1));
    if (n & 1) to[n & 6] = (uint8_t)value;
}

/* Any bit range of at most 128 bits, for fields that straddle bytes in unusual ways. */
INA_INLINE ina_u128 ina_load_bits(const uint8_t *from, size_t first_bit, size_t width) {
    ina_u128 value = 0;
    for (size_t bit = first_bit; bit < first_bit + width; bit++)
        value = value << 1 | (from[bit / 8] >> (7 - bit % 8) & 1);
    return value;
}

INA_INLINE void ina_store_bits(uint8_t *to, size_t first_bit, size_t width, ina_u128 value) {
    for (size_t i = 0; i < width; i++) {
        const size_t bit = first_bit + i;
        const uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        if (value >> (width - 1 - i) & 1)
            to[bit / 8] |= mask;
        else
            to[bit / 8] &= (uint8_t)~mask;
    }
}

/* Whether the first n bytes are those wanted where the mask has ones. n is a constant: 64, 32, 16,
 * 8, 4, 2 or 1; one comparison for all of them, where there are vectors as long. */
INA_INLINE bool ina_matches(const uint8_t *at, const uint8_t *wanted, const uint8_t *mask,
                            size_t n) {
#if defined __AVX512F__ && !defined __clang__
    typedef long long vector_64 __attribute__((vector_size(64), aligned(1), may_alias));
    if (n == 64) {
        const vector_64 differs = *(const vector_64 *)at ^ *(const vector_64 *)wanted;
        return __builtin_ia32_ptestmq512(differs, *(const vector_64 *)mask, UINT8_MAX) == 0;
    }
#endif
#ifdef __AVX__
    typedef long long vector_32 __attribute__((vector_size(32), aligned(1), may_alias));
    if (n % 32 == 0) {
        for (size_t i = 0; i < n; i += 32) {
            const vector_32 differs =
                *(const vector_32 *)(at + i) ^ *(const vector_32 *)(wanted + i);
            if (!__builtin_ia32_ptestz256(differs, *(const vector_32 *)(mask + i))) return false;
        }
        return true;
    }
#endif
    uint64_t differs = 0;
    for (size_t i = 0; i < n; i += 8) {
        const size_t size = n < 8 ? n : 8;
        differs |= (ina_load_raw(at + i, size) ^ ina_load_raw(wanted + i, size)) &
                   ina_load_raw(mask + i, size);
    }
    return differs == 0;
}

/* Arrays of equal fields: the loops that the compiler turns into vector shuffles. */
#define INA_DEFINE_ARRAY_COPY(bits, swap)                                                          \
    typedef uint##bits##_t INA_ANYWHERE ina_wire_##bits;                                           \
    INA_INLINE void ina_load_array_##bits(uint##bits##_t *restrict to,                             \
                                          const uint8_t *restrict from, size_t count) {            \
        const ina_wire_##bits *const wire = (const ina_wire_##bits *)from;                         \
        for (size_t i = 0; i < count; i++) to[i] = swap(wire[i]);                                  \
    }                                                                                              \
    INA_INLINE uint##bits##_t ina_element_##bits(const uint8_t *from, size_t at) {                 \
        return swap(((const ina_wire_##bits *)from)[at]);                                          \
    }                                                                                              \
    INA_INLINE void ina_store_array_##bits(uint8_t *restrict to,                                   \
                                           const uint##bits##_t *restrict from, size_t count) {    \
        ina_wire_##bits *const wire = (ina_wire_##bits *)to;                                       \
        INA_ANY_ORDER                                                                              \
        for (size_t i = 0; i < count; i++) wire[i] = swap(from[i]);                                \
    }
#define INA_SAME(x) (x)
INA_DEFINE_ARRAY_COPY(8, INA_SAME)
INA_DEFINE_ARRAY_COPY(16, __builtin_bswap16)
INA_DEFINE_ARRAY_COPY(32, __builtin_bswap32)
INA_DEFINE_ARRAY_COPY(64, __builtin_bswap64)

/* Shifts by any amount, as P4 defines them. */
INA_INLINE uint32_t ina_shl32(uint32_t x, uint64_t n) { return n > 31 ? 0 : x << n; }
INA_INLINE uint64_t ina_shl64(uint64_t x, uint64_t n) { return n > 63 ? 0 : x << n; }
INA_INLINE uint64_t ina_shr_u64(uint64_t x, uint64_t n) { return n > 63 ? 0 : x >> n; }
INA_INLINE int64_t ina_shr_i64(int64_t x, uint64_t n) { return x >> (n > 63 ? 63 : n); }
#ifdef __bpf__ /* has none of 128 bits */
INA_INLINE ina_u128 ina_shl128(ina_u128 x, uint64_t n) {
    const uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    if (n > 127) return 0;
    if (n > 63) return ina_u128_of(low << (n - 64), 0);
    return ina_u128_of(high << n | low >> 1 >> (63 - n), low << n);
}
INA_INLINE ina_u128 ina_shr_u128(ina_u128 x, uint64_t n) {
    const uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    if (n > 127) return 0;
    if (n > 63) return ina_u128_of(0, high >> (n - 64));
    return ina_u128_of(high >> n, low >> n | high << 1 << (63 - n));
}
INA_INLINE ina_i128 ina_shr_i128(ina_i128 x, uint64_t n) {
    const int64_t high = (int64_t)(x >> 64);
    const uint64_t low = (uint64_t)x;
    if (n > 63) return (ina_i128)(high >> (n > 127 ? 63 : n - 64));
    return (ina_i128)ina_u128_of((uint64_t)(high >> n), low >> n | (uint64_t)high << 1 << (63 - n));
}
#else
INA_INLINE ina_u128 ina_shl128(ina_u128 x, uint64_t n) { return n > 127 ? 0 : x << n; }
INA_INLINE ina_u128 ina_shr_u128(ina_u128 x, uint64_t n) { return n > 127 ? 0 : x >> n; }
INA_INLINE ina_i128 ina_shr_i128(ina_i128 x, uint64_t n) { return x >> (n > 127 ? 127 : n); }
#endif

INA_INLINE int64_t ina_clamp_i64(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}
INA_INLINE ina_i128 ina_clamp_i128(ina_i128 x, ina_i128 low, ina_i128 high) {
    return x < low ? low : x > high ? high : x;
}
INA_INLINE uint64_t ina_min_u64(uint64_t x, uint64_t high) { return x > high ? high : x; }
INA_INLINE ina_u128 ina_min_u128(ina_u128 x, ina_u128 high) { return x > high ? high : x; }

/* The low `bits` of x as a two's complement number. */
INA_INLINE int64_t ina_sign_extend(uint64_t x, unsigned bits) {
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}
INA_INLINE ina_i128 ina_sign_extend128(ina_u128 x, unsigned bits) {
    return (ina_i128)(x << (128 - bits)) >> (128 - bits);
}

#endif /* INA_BASE_H */
