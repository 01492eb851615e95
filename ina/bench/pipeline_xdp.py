"""How fast the kernel's program sums, beside one that is written by hand for it.

Both take frames in memory, one after another, on one core: ingress, to the point where a sum would
be copied to its receivers. What making the frames takes is measured with a program that drops them,
and taken off both. Egress runs once more for each copy, on frames that are given to it one by one.
"""

from __future__ import annotations

import statistics
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ina
from ina.bench.pipeline import install
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.xdp_turns import Turns
from ina.errors import UnavailableError
from ina.p4 import compiled
from ina.switch.targets import xdp_target
from ina.switch.xdp.compile import built
from ina.switch.xdp.libbpf import Object, Programs
from ina.switch.xdp.pipeline import XdpPipeline

FLOOR = Path(ina.__file__).parent.parent / "benchmarks" / "xdp_floor.c"
"""Written by hand."""
MOST_VALUES, MOST_WORKERS = 512, 32
"""Of a frame in one page, and of one level's bitmap."""
_FRAMES = 100_000
"""Of one sample."""
_COPIES = 2_000
_REDIRECT = 4


@dataclass(frozen=True)
class XdpRow:
    """One build, beside the floor."""

    values: int
    workers: int
    ns_per_packet: float
    low_ns_per_packet: float
    high_ns_per_packet: float
    floor_ns_per_packet: float
    of_floor: float
    """Median of the samples' ratios."""
    ns_per_copy: float
    """Of egress."""
    sums_checked: int
    wrong: int


def why_no_floor() -> str:
    """Why there is nothing to compare with; empty: there is."""
    return "" if FLOOR.exists() else f"no {FLOOR}: the hand-written program is in the repository"


def measure_xdp(values: int, workers: int, repeats: int) -> XdpRow:
    """The median of ``repeats`` samples of both, in turns.

    Raises UnavailableError: no floor; as Target.load.
    """
    if why := why_no_floor():
        raise UnavailableError(why)
    with (
        Turns(values, workers) as turns,
        xdp_target().load(compiled(values).bmv2_json) as pipeline,
    ):
        assert isinstance(pipeline, XdpPipeline)
        floor = Object(built(FLOOR, turns.macros))
        try:
            install(pipeline, workers, port=1)
            checked, wrong = _check(turns, pipeline, floor)
            own_program = pipeline.kernel.program("ina_ingress")
            programs = (turns.nothing, floor.program("floor"), own_program)
            samples = [_sample(turns, programs) for _ in range(repeats + 1)][1:]  # one warms up
            copies = _copies(turns, pipeline.kernel)
        finally:
            floor.close()
    own = spread([sample[1] for sample in samples])
    return XdpRow(
        values=values,
        workers=workers,
        ns_per_packet=own.median,
        low_ns_per_packet=own.low,
        high_ns_per_packet=own.high,
        floor_ns_per_packet=statistics.median(sample[0] for sample in samples),
        of_floor=statistics.median(of / floor_ns for floor_ns, of in samples),
        ns_per_copy=copies,
        sums_checked=checked,
        wrong=wrong,
    )


def ratios(rows: list[XdpRow]) -> list[Ratio]:
    """The time of a packet over the floor's: less is better, so it is turned round."""
    return [
        Ratio(f"{row.values} values n={row.workers} floor/xdp", 1 / row.of_floor) for row in rows
    ]


def _sample(turns: Turns, programs: tuple[int, int, int]) -> tuple[float, float]:
    """Of the floor and ours, without what makes the frames."""
    nothing, floor, own = (float(turns.measure(program, _FRAMES)) for program in programs)
    return floor - nothing, own - nothing


def _copies(turns: Turns, kernel: Programs) -> float:
    """Nanoseconds of egress, of one copy of a sum: given to it again and again."""
    turns.batch.set_round(1 << 20)
    for frame in turns.batch.frames[0]:
        arrived = kernel.run("ina_ingress", frame.tobytes())
    kernel.maps["ina_copy_of_test"].write(bytes(4), struct.pack("<II", 1, 1))

    def median(name: str, program: Programs) -> float:
        ran = (program.run(name, arrived.data, meta=arrived.meta) for _ in range(_COPIES))
        return statistics.median(it.duration_ns for it in ran)

    return median("ina_egress_of_test", kernel) - median("nothing", turns.kernel)


def _check(turns: Turns, pipeline: XdpPipeline, floor: Object) -> tuple[int, int]:
    """The sums of one round, of both; how many values were compared, and how many differ."""

    def ours(frame: bytes) -> bytes | None:
        left = pipeline.process(1, frame)
        return left[0][1] if left else None

    def by_hand(frame: bytes) -> bytes | None:
        ran = floor.run("floor", frame)
        return ran.data if ran.verdict == _REDIRECT else None

    found = [_differences(turns, one) for one in (ours, by_hand)]
    return sum(checked for checked, _ in found), sum(wrong for _, wrong in found)


def _differences(turns: Turns, take: Callable[[bytes], bytes | None]) -> tuple[int, int]:
    values, workers = turns.macros["VALUES"], turns.macros["WORKERS"]
    wanted = turns.batch.gradients.sum(axis=1, dtype=np.int32)
    checked = wrong = 0
    for chunk, sums in enumerate(wanted):
        left = [take(turns.frames[chunk * workers + worker]) for worker in range(workers)]
        result = left[-1]
        got = np.frombuffer(result[-4 * values :], ">i4") if result else ~sums
        checked += values
        wrong += int((got != sums).sum()) + values * sum(it is not None for it in left[:-1])
    return checked, wrong
