"""Every operator of the generated code against Python's integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS

WIDTHS = {
    "op": 8, "a8": 8, "b8": 8, "r8": 8, "a32": 32, "b32": 32, "r32": 32, "a64": 64, "b64": 64,
    "r64": 64, "a128": 128, "b128": 128, "r128": 128, "s": 16, "t": 16, "rs": 16, "x": 3, "y": 5,
    "xy": 8,
}  # fmt: skip
SIZES = (8, 32, 64, 128)


def pack(values: dict[str, int]) -> bytes:
    whole = bits = 0
    for name, width in WIDTHS.items():
        whole = whole << width | (values.get(name, 0) & ((1 << width) - 1))
        bits += width
    return whole.to_bytes(bits // 8, "big")


def unpack(data: bytes) -> dict[str, int]:
    whole = int.from_bytes(data, "big")
    values = {}
    for name, width in reversed(WIDTHS.items()):
        values[name] = whole & ((1 << width) - 1)
        whole >>= width
    return values


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def expected(v: dict[str, int]) -> dict[str, int]:
    """What the program should write, before it is cut to the field."""
    s, t = signed(v["s"], 16), signed(v["t"], 16)
    a = {n: v[f"a{n}"] for n in SIZES}
    b = {n: v[f"b{n}"] for n in SIZES}
    shift = v["b8"]
    out: dict[str, int] = {"xy": v["x"] << 5 | v["y"]}

    def each(function: Any, sizes: tuple[int, ...] = SIZES) -> None:
        out.update({f"r{n}": function(a[n], b[n], n) for n in sizes})

    narrow = (8, 32, 64)
    match v["op"]:
        case 0:
            each(lambda x, y, n: x + y)
            out["rs"] = s + t
        case 1:
            each(lambda x, y, n: x - y)
            out["rs"] = s - t
        case 2:
            each(lambda x, y, n: x * y)
            out["rs"] = s * t
        case 3:
            each(lambda x, y, n: min(x + y, (1 << n) - 1), narrow)
            out["rs"] = clamp(s + t, -(1 << 15), (1 << 15) - 1)
        case 4:
            each(lambda x, y, n: max(x - y, 0), narrow)
            out["rs"] = clamp(s - t, -(1 << 15), (1 << 15) - 1)
        case 5:
            each(lambda x, y, n: x << shift)
            out["rs"] = s << 3
        case 6:
            each(lambda x, y, n: x >> shift)
            out["rs"] = s >> 3
        case 7:
            out |= {"r8": a[8] & b[8], "r32": a[32] | b[32], "r64": a[64] ^ b[64]}
            out |= {"r128": ~a[128], "rs": -s}
        case 8:
            out |= {"r8": a[8] < b[8], "r32": a[32] >= b[32], "r64": a[64] == b[64]}
            out |= {"r128": a[128] > b[128], "rs": s < t}
        case _:
            out |= {"r8": a[32] >> 12, "r32": a[8], "r64": a[32] << 32 | b[32], "r128": a[64]}
            out |= {"rs": signed(a[8], 8), "a32": a[32] & ~0xFF00 | b[8] << 8}
    return out


@pytest.fixture(scope="module")
def calculator(cache_dir: Path) -> Any:
    with default_target(cache_dir).load(PROGRAMS / "arithmetic.json") as pipeline:
        yield pipeline


def interesting(width: int) -> st.SearchStrategy[int]:
    top = (1 << width) - 1
    edges = [0, 1, 2, top, top - 1, top >> 1, (top >> 1) + 1]
    return st.one_of(st.sampled_from(edges), st.integers(0, top))


OPERANDS = st.fixed_dictionaries({name: interesting(width) for name, width in WIDTHS.items()})


@settings(deadline=None, max_examples=400)
@given(values=OPERANDS, op=st.integers(0, 9), equal=st.booleans())
def test_operators_are_those_of_integers(
    calculator: Pipeline, values: dict[str, int], op: int, equal: bool
) -> None:
    values["op"] = op
    if equal:
        values |= {f"b{n}": values[f"a{n}"] for n in SIZES} | {"t": values["s"]}
    [(port, packet)] = calculator.process(3, pack(values) + b"tail")
    want = values | {
        name: value & ((1 << WIDTHS[name]) - 1) for name, value in expected(values).items()
    }
    assert port == 1
    assert packet.endswith(b"tail")
    assert unpack(packet[:-4]) == want
