"""CRC-32 by what a processor has: folding, tables, Arm's instruction. zlib says what is right."""

from __future__ import annotations

import ctypes
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ina.switch
from ina.switch.c_target.cache import find_compiler

RUNTIME = Path(ina.switch.__file__).parent / "emit" / "runtime"
SOURCE = """#include "ina_crc.h"
uint32_t crc32_of(const uint8_t *data, size_t size) { return ~ina_crc32(0xffffffffu, data, size); }
"""
Crc = Callable[[bytes], int]


@pytest.fixture(scope="module", params=["-march=native", "-O0"], ids=["native", "plain"])
def crc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Crc:
    folder = tmp_path_factory.mktemp("crc")
    source, library = folder / "crc.c", folder / "crc.so"
    source.write_text(SOURCE)
    flags = [request.param, "-std=gnu11", "-shared", "-fPIC", f"-I{RUNTIME}"]
    subprocess.run([find_compiler(None), *flags, source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).crc32_of
    function.restype, function.argtypes = ctypes.c_uint32, (ctypes.c_char_p, ctypes.c_size_t)
    return lambda data: int(function(data, len(data)))


def test_every_length_to_three_blocks_of_folding(crc: Crc) -> None:
    data = bytes(7 * number % 251 for number in range(200))
    for size in range(len(data) + 1):
        assert crc(data[:size]) == zlib.crc32(data[:size])


@given(st.binary(max_size=64), st.binary(min_size=1, max_size=200), st.integers(1, 25))
def test_random_bytes(crc: Crc, head: bytes, block: bytes, times: int) -> None:
    data = head + block * times
    assert crc(data) == zlib.crc32(data)


def test_the_published_check_value(crc: Crc) -> None:
    assert crc(b"123456789") == 0xCBF43926
