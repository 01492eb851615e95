// By carry-less products or a CRC instruction: CMakeLists.txt has the compiler use them here alone.
#include "common/crc32.h"
#include "ina_crc.h"

#if defined __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

uint32_t ina_crc32_fast(uint32_t crc, const uint8_t *data, size_t size) {
    return ina_crc32(crc, data, size);
}

int ina_has_fast_crc32(void) {
#if defined INA_CRC_FOLDS
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#elif defined __ARM_FEATURE_CRC32
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return 0;
#endif
}
