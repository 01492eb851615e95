"""What a user may do to a frame on its way, and to a switch's memory."""

from __future__ import annotations

import numpy as np
import pytest

from ina.protocol.codec import decode_header
from ina.protocol.spec import Kind
from ina.sim.fabric import SimSwitch
from ina.switch.errors import EntryNotFoundError, InvalidEntryError
from ina.switch.pipeline import Pipeline
from ina.testing.frames import PAYLOAD_OFFSET
from tests.worlds.virtual.star import Star

PART = np.arange(640, dtype=np.int32)


def reduce(star: Star) -> None:
    """Two parts, and checks the sums."""
    for out in star.all_reduce([PART, PART]):
        np.testing.assert_array_equal(out, 2 * PART)


@pytest.mark.parametrize(
    ("way", "kind"), [("h1>s1", Kind.CONTRIBUTION), ("s1>h1", Kind.RESULT)], ids=["up", "down"]
)
def test_a_tap_is_shown_each_frame_and_says_what_arrives(way: str, kind: Kind) -> None:
    star = Star(2)
    port = star.fabric.ports[way]
    seen: list[bytes] = []

    def tap(frame: bytes) -> bytes | None:
        seen.append(frame)
        # Lost; with a byte more behind it, as Ethernet pads short frames; as it is.
        return (None, frame + b"\0", frame)[min(len(seen), 3) - 1]

    port.set_tap(tap)
    reduce(star)
    assert port.counters.lost_packets == 1
    assert len(seen) == port.counters.arrived_packets + 1 > 10
    assert {decode_header(frame[PAYLOAD_OFFSET:]).kind for frame in seen} == {kind}
    port.set_tap(None)
    before = len(seen)
    reduce(star)
    assert len(seen) == before


def test_what_a_tap_makes_of_a_frame_is_what_the_switch_sums() -> None:
    star = Star(1)
    star.up[0].set_tap(lambda frame: frame[:-1] + b"\x05")  # the last value's last byte
    (out,) = star.all_reduce([np.zeros(64, np.int32)])
    assert out.tolist() == [0] * 63 + [5]


def test_what_a_tap_raises_ends_the_run_there() -> None:
    star = Star(1)

    def tap(frame: bytes) -> bytes:
        raise ArithmeticError(f"{len(frame)} bytes")

    star.down[0].set_tap(tap)
    with pytest.raises(ArithmeticError, match="330 bytes"):
        star.all_reduce([PART])


def test_no_frame_is_longer_than_the_network_carries() -> None:
    star = Star(1)
    star.down[0].set_tap(lambda frame: frame + bytes(1 << 17))
    with pytest.raises(ValueError, match="no frame is so long"):
        star.all_reduce([PART])


def pipeline_of(switch: SimSwitch) -> Pipeline:
    assert switch.pipeline is not None
    return switch.pipeline


def test_registers_can_be_written() -> None:
    """A slot whose memory changes between two contributions gives another sum."""
    star = Star(2)
    pipeline = pipeline_of(star.fabric.switches["s1"])
    value = next(one.name for one in pipeline.program.registers if one.name.endswith("value_3"))
    outs = [np.zeros(64, np.int32) for _ in range(2)]
    star.submit(0, 1, PART[:64], outs[0])
    star.run_until(100_000)
    assert pipeline.register(value, 0) == 3
    pipeline.set_register(value, 0, 1 << 40 | 1000)  # of 32 bits
    assert pipeline.register(value, 0) == 1000
    star.submit(1, 1, PART[:64], outs[1])
    star.run(1)
    assert [out[3] for out in outs] == [1003, 1003]
    with pytest.raises(EntryNotFoundError):
        pipeline.set_register(value, 1 << 20, 0)
    with pytest.raises(InvalidEntryError):
        pipeline.set_register("nothing", 0, 0)
