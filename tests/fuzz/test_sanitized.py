"""In ``make test-sanitized``: that it is what it says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ina import extension

pytestmark = pytest.mark.skipif(
    "INA_SANITIZED" not in os.environ, reason="is of make test-sanitized (tools/sanitized.py)"
)
_READ_PAST_THE_END = """
import ctypes
from ina.extension import quantize
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
source, target = libc.malloc(ctypes.c_size_t(16)), libc.malloc(ctypes.c_size_t(64))
quantize.copy_bytes(source, target, {size}, 1)
"""


def copy(size: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _READ_PAST_THE_END.format(size=size)],
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_extension_is_the_sanitized_one() -> None:
    assert "build/sanitized" in extension.check()


def test_a_read_past_the_end_is_seen() -> None:
    assert copy(16).returncode == 0
    result = copy(17)
    assert result.returncode != 0
    assert "heap-buffer-overflow" in result.stderr
