// By tables.
#include "common/crc32.h"
#include "ina_crc.h"

uint32_t ina_crc32_plain(uint32_t crc, const uint8_t *data, size_t size) {
    return ina_crc_by_table(crc, data, size);
}
