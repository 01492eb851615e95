"""The quantisers of 64-bit ARM (NEON), cross-compiled and run by QEMU, give this machine's bits."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina._native import quantize as native
from ina.host.arrays import VALUE_TYPES
from ina.testing import numerics

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("aarch64-linux-gnu-g++")
OBJDUMP = shutil.which("aarch64-linux-gnu-objdump")
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
DEADLINE_S = 300
LENGTHS = (0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 255, 256, 257)
INT32 = np.dtype(np.int32)
OPERATIONS = {"scan": 0, "quantize": 1, "dequantize": 2}

pytestmark = pytest.mark.skipif(
    COMPILER is None or OBJDUMP is None or QEMU is None,
    reason="needs aarch64-linux-gnu-g++ and qemu-aarch64 "
    "(apt-get install g++-aarch64-linux-gnu qemu-user)",
)


@dataclass(frozen=True)
class Case:
    what: str
    dtype: np.dtype[Any]
    data: numerics.Array
    scale: float = 1.0
    divisor: int = 1

    def packed(self) -> bytes:
        header = OPERATIONS[self.what], VALUE_TYPES[self.dtype], self.data.size, self.divisor
        return struct.pack("<4If", *header, self.scale) + self.data.tobytes()

    def here(self) -> bytes:
        """What this machine's plainest kernels say."""
        kernels, type_code = "generic", VALUE_TYPES[self.dtype]
        if self.what == "dequantize":
            out = np.empty(self.data.size, self.dtype)
            wire, to = self.data.tobytes(), out.ctypes.data
            native.dequantize(kernels, type_code, wire, self.scale, self.divisor, to)
            return out.tobytes()
        address, size = self.data.ctypes.data, self.data.size
        if self.what == "scan":
            return bytes(native.scan(kernels, type_code, address, size))
        return native.quantize(kernels, type_code, address, size, self.scale)


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(5)
    for dtype in numerics.FLOATS:
        bits = np.dtype(f"u{dtype.itemsize}")
        every = 2 ** (8 * dtype.itemsize)
        for length in LENGTHS:
            # Any bits: NaN and Inf among them, subnormals, the largest values.
            block = rng.integers(0, every, length, dtype=bits).view(dtype)
            yield Case("scan", dtype, block)
            finite = np.where(np.isfinite(block.astype(np.float32)), block, dtype.type(0))
            yield Case("scan", dtype, finite)
            small = (block.view(bits) & bits.type(0x83FF)).view(dtype)
            yield Case("scan", dtype, small)
            for values in finite, small:
                least = max(numerics.block_exponent(values), 32)
                for exponent in {least, min(least + 9, 255), 255}:
                    scale = float(numerics.scale(exponent, int(rng.integers(1, 1025))))
                    yield Case("quantize", dtype, values, scale)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    for power in 0, 9, 15:
        yield Case("quantize", halves.dtype, halves, 2.0**power)
    for dtype in (INT32, *numerics.FLOATS):
        for length in LENGTHS:
            wide = rng.integers(-(2**31), 2**31, length, dtype=np.int64)
            sums = (wide >> rng.integers(0, 31, length)).astype(np.int32)
            sums[: min(length, 2)] = [-(2**31), 2**31 - 1][: min(length, 2)]
            if dtype == INT32:
                yield Case("quantize", dtype, sums)
            for divisor in 1, 2, 3, 7, 31, 32:
                inverse = 2.0 ** int(rng.integers(-126, 103))
                yield Case("dequantize", dtype, sums.astype(">i4"), inverse, divisor)
        # A float16's range, its edges and what lies around them.
        sums = rng.integers(-(2**31), 2**31, 4096).astype(np.int32)
        sums >>= rng.integers(0, 31, 4096).astype(np.int32)
        for power in range(-60, -10):
            yield Case("dequantize", dtype, sums.astype(">i4"), 2.0**power, 1)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled as the extension is; nothing of ARM's has to be installed to run it."""
    assert COMPILER is not None
    path = tmp_path_factory.mktemp("arm") / "quantize"
    sources = [ROOT / "tests/host/quantize_cases.cpp", ROOT / "native/host/core/quantize.cpp"]
    options = ["-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-static"]
    command = [COMPILER, *options, f"-I{ROOT / 'native'}", *map(str, sources), "-o", str(path)]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    return path


def run(program: Path, kernels: str, data: bytes = b"") -> bytes:
    assert QEMU is not None
    command = [QEMU, str(program), kernels]
    return subprocess.run(
        command, input=data, check=True, stdout=subprocess.PIPE, timeout=DEADLINE_S
    ).stdout


def test_neon_is_chosen_over_the_generic_kernels(program: Path) -> None:
    assert run(program, "names").decode().split() == ["generic", "neon"]  # slowest first


@pytest.mark.parametrize("kernels", ["generic", "neon"])
def test_all_results_are_those_of_this_machine(program: Path, kernels: str) -> None:
    every = list(cases())
    assert {case.what for case in every} == set(OPERATIONS)
    got = run(program, kernels, b"".join(case.packed() for case in every))
    for case in every:
        want = case.here()
        assert got[: len(want)] == want, case
        got = got[len(want) :]
    assert got == b""


# Per kernel, the vector instructions of its inner loop: byte swap, conversions, maximum.
LOOPS = {
    "neon::quantize": ("rev32", "fcvtl", "fcvtns", "fcvtzs", "fmul"),
    "neon::dequantize": ("rev32", "scvtf", "fcvtn", "fmul"),
    "::scan": ("smax",),  # the same code in both sets, kept once by the compiler
}


def test_the_loops_are_made_of_vector_instructions(program: Path) -> None:
    assert OBJDUMP is not None
    command = [OBJDUMP, "--disassemble", "--demangle", "--no-show-raw-insn", str(program)]
    text = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=DEADLINE_S
    ).stdout
    functions = text.split("\n\n")
    for name, wanted in LOOPS.items():
        code = [part for part in functions if f"{name}(ina::host::ValueType" in part]
        assert code, name
        used = {
            words[0]
            for line in "\n".join(code).splitlines()
            if (words := line.partition("\t")[2].split()) and words[1:] and words[1][0] == "v"
        }
        assert used >= set(wanted), f"{name}: {sorted(used)}"
