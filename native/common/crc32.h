/* CRC-32 of bytes in memory: the one that pipelines have (ina/switch/emit/runtime/ina_crc.h),
 * compiled for any processor, and for those with instructions for it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes on from `crc`: of the first bytes 0xffffffff; what comes of the last is complemented. */
uint32_t ina_crc32_plain(uint32_t crc, const uint8_t *data, size_t size);
/* The same; only where ina_has_fast_crc32() says 1. */
uint32_t ina_crc32_fast(uint32_t crc, const uint8_t *data, size_t size);
int ina_has_fast_crc32(void);

#ifdef __cplusplus
}
#endif
