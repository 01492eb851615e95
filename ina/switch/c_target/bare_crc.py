"""CRC-32 alone, as compiled programs have it: what those that compute one can be held against."""

from __future__ import annotations

import ctypes

from ina.switch.c_target.cache import load_library

_SOURCE = """#include "ina_crc.h"
const char *const source_digest = "%s";
uint32_t crc_of_each(const uint8_t *at, size_t stride, size_t size, size_t count);
uint32_t crc_of_each(const uint8_t *at, size_t stride, size_t size, size_t count) {
    uint32_t all = 0; // so that each is needed
    for (; count; count--, at += stride) all ^= ~ina_crc32(0xffffffffu, at, size);
    return all;
}
"""


class BareCrc:
    """Compiled with what programs are compiled with."""

    def __init__(self) -> None:
        """Raises CompilerMissingError, CompilationError, CacheError."""
        library, _ = load_library(_SOURCE.encode(), "", lambda digest: _SOURCE % digest, None, None)
        self._function = library.crc_of_each
        self._function.argtypes = (ctypes.c_void_p, *3 * (ctypes.c_size_t,))
        self._function.restype = ctypes.c_uint32

    def of_each(self, address: int, stride_bytes: int, size_bytes: int, count: int) -> int:
        """All CRCs of ``count`` stretches of memory, one behind the other, by exclusive or."""
        return int(self._function(address, stride_bytes, size_bytes, count))
