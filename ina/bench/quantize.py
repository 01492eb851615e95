"""The host's conversions beside memcpy: as many bytes read and written, one thread, CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.errors import InvalidInputError
from ina.host.arrays import VALUE_TYPES
from ina.host.blocks import Conversion, convert, copy, kernels_name
from ina.protocol.spec import VALUE_BYTES

PLACES = {"cache": 128 << 10, "DRAM": 64 << 20}
"""Bytes of int32 values: both arrays stay in a core's second-level cache, or in no cache."""
_SAMPLE_BYTES = 64 << 20
"""Small arrays are converted again and again until so much was done, in one sample."""


@dataclass(frozen=True)
class ConversionRow:
    """One conversion of one dtype, from one place. GB/s count bytes read and bytes written."""

    what: str
    type: str
    place: str
    elems: int
    bytes_moved: int
    """Read and written by one pass."""
    gb_per_second: float
    low_gb_per_second: float
    high_gb_per_second: float
    memcpy_gb_per_second: float
    """memcpy that reads and writes as many bytes, in turns with it."""
    of_memcpy: float
    values_per_ns: float
    kernels: str
    """The instruction set."""
    wrong: int
    """Values that did not come back as they were; for dequantize."""


def measure(dtype_name: str, place: str, block_elems: int, repeats: int) -> list[ConversionRow]:
    """Every conversion of one dtype. Raises InvalidInputError: the network does not sum it."""
    dtypes = {str(dtype): dtype for dtype in VALUE_TYPES}
    if dtype_name not in dtypes:
        raise InvalidInputError(f"--dtype {dtype_name}: the network sums {', '.join(dtypes)}")
    dtype = dtypes[dtype_name]
    elems = PLACES[place] // VALUE_BYTES
    rng = np.random.default_rng(1)
    # Integers that every dtype holds: what comes back must be the same.
    array = rng.integers(-256, 257, elems).astype(dtype)
    original = array.copy()
    wire = np.zeros(elems * VALUE_BYTES, np.uint8)
    found = []
    conversions: tuple[Conversion, ...] = ("scan", "quantize", "dequantize")
    for what in conversions:
        if what == "scan" and dtype == np.dtype(np.int32):
            continue
        written = 0 if what == "scan" else VALUE_BYTES
        moved = elems * (dtype.itemsize + written)
        rounds = max(1, _SAMPLE_BYTES // moved)
        source, target = np.ones(moved // 2, np.uint8), np.zeros(moved // 2, np.uint8)

        ours, theirs = [], []
        if what == "dequantize":
            array[:] = 0  # so that the check below cannot pass by itself
        for repeat in range(repeats + 1):
            times = (
                _cpu_s(partial(convert, what, array, wire, block_elems, rounds)),
                _cpu_s(partial(copy, source, target, rounds)),
            )
            if repeat:  # the first one warms up
                ours.append(moved * rounds / times[0] / 1e9)
                theirs.append(moved * rounds / times[1] / 1e9)
        rate, limit = spread(ours), spread(theirs).median
        wrong = int((array != original).sum()) if what == "dequantize" else 0
        found.append(
            ConversionRow(
                what=what,
                type=dtype_name,
                place=place,
                elems=elems,
                bytes_moved=moved,
                gb_per_second=rate.median,
                low_gb_per_second=rate.low,
                high_gb_per_second=rate.high,
                memcpy_gb_per_second=limit,
                of_memcpy=rate.median / limit,
                values_per_ns=rate.median / (moved / elems),
                kernels=kernels_name(),
                wrong=wrong,
            )
        )
    return found


def _cpu_s(work: Callable[[], None]) -> float:
    started = time.thread_time_ns()
    work()
    return max(1, time.thread_time_ns() - started) / 1e9


def ratios(rows: list[ConversionRow]) -> list[Ratio]:
    """Over memcpy, by conversion, dtype and place."""
    return [Ratio(f"{row.what} {row.type} {row.place} /memcpy", row.of_memcpy) for row in rows]
