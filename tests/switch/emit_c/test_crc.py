"""CRC-32 by what a processor has: folding, tables, Arm's instruction. zlib says what is right."""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ina.switch
from ina.switch.c_target.cache import find_compiler
from ina.switch.emit.crcs import distance

RUNTIME = Path(ina.switch.__file__).parent / "emit" / "runtime"
SOURCE = """#include "ina_crc.h"
uint32_t crc32_of(const uint8_t *data, size_t size) { return ~ina_crc32(0xffffffffu, data, size); }
uint32_t patched(const uint8_t *data, size_t size, const uint8_t *keep, const uint8_t *ones,
                 size_t first) {
    return ~ina_crc32_patched(0xffffffffu, data, size, keep, ones, first);
}
uint32_t headed(const uint8_t *head, size_t words, const uint64_t *over, uint32_t behind) {
    const ina_crc_distance distance = {over[0], over[1], (uint32_t)over[2]};
    uint64_t copy[16];
    memcpy(copy, head, 8 * words);
    return ~ina_crc32_headed(0xffffffffu, copy, words, &distance, behind);
}
uint32_t of_array(const uint32_t *kept_in, const uint8_t *wire, size_t count) {
    return ina_crc32_of_array_32(kept_in, wire, count);
}
"""
Crc = Callable[[bytes], int]


@pytest.fixture(scope="module", params=["-march=native", "-O0"], ids=["native", "plain"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("crc")
    source, library = folder / "crc.c", folder / "crc.so"
    source.write_text(SOURCE)
    flags = [request.param, "-std=gnu11", "-shared", "-fPIC", f"-I{RUNTIME}"]
    subprocess.run([find_compiler(None), *flags, source, "-o", library], check=True)
    made = ctypes.CDLL(str(library))
    text, size = ctypes.c_char_p, ctypes.c_size_t
    for name, arguments in {
        "crc32_of": (text, size),
        "patched": (text, size, text, text, size),
        "headed": (text, size, ctypes.c_void_p, ctypes.c_uint32),
        "of_array": (ctypes.c_void_p, text, size),
    }.items():
        function = getattr(made, name)
        function.restype, function.argtypes = ctypes.c_uint32, arguments
    return made


@pytest.fixture(scope="module")
def crc(library: ctypes.CDLL) -> Crc:
    return lambda data: int(library.crc32_of(data, len(data)))


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


@given(st.integers(1, 8), st.integers(0, 300), st.randoms(use_true_random=False))
def test_of_bytes_of_which_some_are_others(
    library: ctypes.CDLL, blocks: int, more: int, rng: random.Random
) -> None:
    first = 16 * blocks
    data, keep, ones = (rng.randbytes(size) for size in (first + more, first, first))
    wanted = bytes(it & k | o for it, k, o in zip(data, keep, ones, strict=False)) + data[first:]
    assert library.patched(data, len(data), keep, ones, first) == zlib.crc32(wanted)


@given(st.integers(1, 12), st.integers(4, 5000), st.randoms(use_true_random=False))
def test_of_a_header_and_of_what_is_known_of_the_rest(
    library: ctypes.CDLL, words: int, size: int, rng: random.Random
) -> None:
    head, rest = rng.randbytes(8 * words), rng.randbytes(size)
    behind = zlib.crc32(rest, 0xFFFFFFFF) ^ 0xFFFFFFFF  # gone on from 0
    over = (ctypes.c_uint64 * 3)(*distance(size))
    assert library.headed(head, words, over, behind) == zlib.crc32(head + rest)


@pytest.mark.parametrize("count", [1, 3, 64, 255, 256, 257, 600])
def test_of_values_wherever_they_are(library: ctypes.CDLL, count: int) -> None:
    """In the host's order, where they are kept; as they came, in the packet."""
    wire = random.Random(count).randbytes(4 * count)
    kept = (ctypes.c_uint32 * count)(*struct.unpack(f">{count}I", wire))
    wanted = zlib.crc32(wire, 0xFFFFFFFF) ^ 0xFFFFFFFF
    assert library.of_array(kept, None, count) == wanted
    assert library.of_array(None, wire, count) == wanted
