/* Checksums and hashes over a string of bits. csum16 is RFC 1071; the CRCs are the usual reflected
 * ones (CRC-16/ARC, CRC-32/ISO-HDLC). */
#ifndef INA_HASH_H
#define INA_HASH_H

#include "ina_base.h"

#ifdef __bpf__
#define INA_HASH_MAX_BYTES 64
#define INA_HASH INA_INLINE
#define INA_IF_ODD(x, value) ((value) * ((x) & 1)) /* the verifier takes a mask for a branch */
#else
#include "ina_crc.h"
#define INA_HASH_MAX_BYTES 4608 /* 1,024 values and the headers around them */
#define INA_HASH static inline
#define INA_IF_ODD(x, value) ((x) & 1 ? (value) : 0)
#endif

typedef struct {
    uint8_t bytes[INA_HASH_MAX_BYTES];
    size_t bits;
} ina_bits;

#ifdef __bpf__ /* whose verifier wants to see that no byte is beyond the last, and no branches */
INA_INLINE void ina_bits_put_64(ina_bits *out, size_t width, uint64_t value) {
    for (size_t i = 0; i < width; i++) {
        const size_t bit = (out->bits + i) & (8 * INA_HASH_MAX_BYTES - 1);
        uint8_t *const byte = &out->bytes[bit / 8];
        const uint8_t next = (uint8_t)(value >> (width - 1 - i) & 1);
        *byte = (uint8_t)((*byte & ~(0xff >> bit % 8)) | next << (7 - bit % 8));
    }
    out->bits += width;
}

INA_INLINE void ina_bits_put(ina_bits *out, size_t width, ina_u128 value) {
    if (width > 64) ina_bits_put_64(out, width - 64, (uint64_t)(value >> 64));
    ina_bits_put_64(out, width > 64 ? 64 : width, (uint64_t)value);
}
#define INA_HASH_LENGTH(in) ina_min_u64(((in)->bits + 7) / 8, INA_HASH_MAX_BYTES)
#else
#define INA_HASH_LENGTH(in) (((in)->bits + 7) / 8)
INA_INLINE void ina_bits_put(ina_bits *out, size_t width, ina_u128 value) {
    if (out->bits % 8 == 0 && width % 8 == 0 && width <= 64) {
        ina_store(out->bytes + out->bits / 8, width / 8, (uint64_t)value);
        out->bits += width;
        return;
    }
    const size_t last = (out->bits + width + 7) / 8;
    for (size_t i = (out->bits + 7) / 8; i < last; i++) out->bytes[i] = 0;
    ina_store_bits(out->bytes, out->bits, width, value);
    out->bits += width;
}
#endif

/* Folds a sum of 16-bit words (2^16 = 1 modulo 2^16 - 1) and complements it. Adding a number to
 * itself with its halves swapped leaves the end-around-carry sum of the halves in the upper half.
 */
INA_INLINE uint16_t ina_csum16_finish(uint64_t sum) {
    const uint32_t upper = (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);
    return (uint16_t)~((upper + (upper << 16 | upper >> 16)) >> 16);
}

/* The folded sum of words that were loaded as they stood in the packet, in host order. */
INA_INLINE uint64_t ina_csum16_wire(uint64_t sum) {
    return __builtin_bswap16((uint16_t)~ina_csum16_finish(sum));
}

/* Of the bits, and of what comes behind them in the packet. */
INA_HASH uint64_t ina_csum16_payload(const ina_bits *in, const uint8_t *data, size_t size) {
    uint64_t sum = 0;
    const size_t length = INA_HASH_LENGTH(in);
    for (size_t i = 0; i < length; i++) sum += (uint64_t)in->bytes[i] << (i % 2 ? 0 : 8);
    for (size_t i = 0; i < size; i++) sum += (uint64_t)data[i] << ((length + i) % 2 ? 0 : 8);
    return ina_csum16_finish(sum);
}

INA_HASH uint64_t ina_hash_csum16(const ina_bits *in) { return ina_csum16_payload(in, NULL, 0); }

INA_HASH uint64_t ina_hash_crc(const ina_bits *in, uint32_t polynomial, uint32_t start,
                               uint32_t finish) {
    uint32_t crc = start;
    const size_t length = INA_HASH_LENGTH(in);
    for (size_t i = 0; i < length; i++) {
        crc ^= in->bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ INA_IF_ODD(crc, polynomial);
    }
    return crc ^ finish;
}

#ifdef __bpf__
#define ina_crc32_of(in) ina_hash_crc(in, 0xedb88320u, 0xffffffffu, 0xffffffffu)
#else
#define ina_crc32_of(in) (uint32_t)~ina_crc32(0xffffffffu, (in)->bytes, INA_HASH_LENGTH(in))
/* Bytes as they stand in a packet. */
INA_INLINE void ina_bits_put_bytes(ina_bits *out, const uint8_t *from, size_t size) {
    if (out->bits % 8 == 0) {
        memcpy(out->bytes + out->bits / 8, from, size);
        out->bits += 8 * size;
        return;
    }
    for (size_t i = 0; i < size; i++) ina_bits_put(out, 8, from[i]);
}

/* Values that stand one behind the other in memory. */
#define INA_BITS_PUT_ARRAY(width)                                                                  \
    INA_INLINE void ina_bits_put_array_##width(ina_bits *out, const uint##width##_t *from,         \
                                               size_t count) {                                     \
        if (out->bits % 8 == 0) {                                                                  \
            ina_store_array_##width(out->bytes + out->bits / 8, from, count);                      \
            out->bits += width * count;                                                            \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < count; i++) ina_bits_put(out, width, from[i]);                      \
    }
INA_BITS_PUT_ARRAY(8)
INA_BITS_PUT_ARRAY(16)
INA_BITS_PUT_ARRAY(32)
INA_BITS_PUT_ARRAY(64)
#endif

INA_HASH uint64_t ina_hash_crc16(const ina_bits *in) { return ina_hash_crc(in, 0xa001, 0, 0); }

INA_HASH uint64_t ina_hash_crc32(const ina_bits *in) { return ina_crc32_of(in); }

INA_HASH uint64_t ina_hash_xor16(const ina_bits *in) {
    uint64_t x = 0;
    const size_t length = INA_HASH_LENGTH(in);
    for (size_t i = 0; i < length; i++) x ^= (uint64_t)in->bytes[i] << (i % 2 ? 0 : 8);
    return x;
}

/* The first eight bytes as a number. */
INA_HASH uint64_t ina_hash_identity(const ina_bits *in) {
    uint64_t value = 0;
    const size_t length = INA_HASH_LENGTH(in);
    for (size_t i = 0; i < length && i < 8; i++) value = value << 8 | in->bytes[i];
    return value;
}

#endif /* INA_HASH_H */
