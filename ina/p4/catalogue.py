"""Which programs there are: each by mode, target and values a packet, with what it can do.

A number of values alone names none: another mode, or a chip, has builds of as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ina.p4 import names
from ina.p4.builds import all_builds
from ina.p4.errors import UnknownBuildError
from ina.p4.programs import CompiledProgram, compiled
from ina.p4.tofino import TARGETS
from ina.protocol.spec import MAX_WORKERS

V1MODEL = "v1model"
"""The target of what p4c makes for the soft switch and for BMv2."""
BMV2_MOST_GROWTH_BYTES = 512
"""The room that BMv2 has behind a packet; its process ends where a program adds more."""


@dataclass(frozen=True)
class ProgramId:
    """What a switch runs."""

    mode: str
    target: str
    """``v1model``, or a chip of :data:`ina.p4.tofino.TARGETS`."""
    values: int
    """int32 a packet."""

    def __str__(self) -> str:
        on = "" if self.target == V1MODEL else f" on {self.target}"
        return f"{self.mode}{on}, {self.values} values a packet"


@dataclass(frozen=True)
class Capabilities:
    """What a program has room for, and what it shares out."""

    slots: int
    """Of the whole switch; of a chip, of each pipe."""
    jobs: int
    """Job numbers, with 0."""
    members: int
    """Workers of all jobs, and as many rows of receivers."""
    workers: int
    """Of a job: bits of a slot's bitmap."""
    has_pipes: bool
    """Whether registers are a pipe's own, so that a job's workers must be behind one."""
    trees: bool
    """Whether it can be one of several switches that sum a job, as root or below one."""
    shares: bool = False
    """Whether jobs can share slots on it, below an aggregator (``ADMIT_SHARED_JOB``)."""
    adds_sets: bool = False
    """Whether it can be such an aggregator: has ``ADMIT_SET``."""
    evicts: bool = False
    """Whether sums of which nothing was heard go up when another job takes their slots: has
    ``OWNERS``, and counts in ``JOB_EVICTIONS``. Elsewhere they are lost, and sent again."""
    streams: bool = False
    """Whether slots can keep the least of packets' last words: has ``ADMIT_STREAM_JOB``."""
    has_lanes: bool = False
    """Whether a shared job's ``lane_mask``, ``claimable`` and ``age_us`` count. Elsewhere it
    needs a slot for each that it has at the aggregator, and its age is the build's."""


_FURTHER: Mapping[tuple[str, str], Mapping[str, bool]] = {
    (names.SHARED, V1MODEL): {"shares": True, "adds_sets": True, "evicts": True, "has_lanes": True},
    (names.STREAM, V1MODEL): {"streams": True},
    (names.SHARED, "tofino"): {"shares": True},
    (names.SHARED, "tofino2"): {"shares": True, "has_lanes": True},
}
"""By mode and target: what its programs have beyond that of all. A test holds it against P4Info."""


def _of(mode: str, target: str) -> Capabilities:
    return Capabilities(
        names.SLOTS_TOTAL,
        names.JOBS_TOTAL,
        names.FLOWS_TOTAL // names.MAX_RING_LANES
        if mode == names.TRANSPARENT
        else names.MEMBERS_TOTAL,
        MAX_WORKERS,
        has_pipes=target != V1MODEL,
        trees=True,
        **_FURTHER.get((mode, target), {}),
    )


PROGRAMS: Mapping[ProgramId, Capabilities] = {
    **{ProgramId(mode, V1MODEL, values): _of(mode, V1MODEL) for mode, values in all_builds()},
    **{
        ProgramId(mode, chip.name, chip.values): _of(mode, chip.name)
        for mode in names.MODES_ON_CHIPS
        for chip in TARGETS.values()
    },
}
"""Every program; of a mode and target, the builds in the order of their documentation."""


def target_of(kind: str) -> str:
    """What a kind of switch (``soft``, ``bmv2``, ``tofino``, ...) runs programs of."""
    return kind if kind in TARGETS else V1MODEL


def values_of(mode: str, target: str) -> tuple[int, ...]:
    """Values a packet of a mode's builds for a target; empty: there are none."""
    return tuple(it.values for it in PROGRAMS if (it.mode, it.target) == (mode, target))


def capabilities(program: ProgramId) -> Capabilities:
    """Raises :class:`UnknownBuildError`: there is no such program."""
    found = PROGRAMS.get(program)
    if found is None:
        raise UnknownBuildError(f"there is no program {program}")
    return found


def find(program: ProgramId) -> CompiledProgram:
    """The checked-in build of a program.

    Raises :class:`UnknownBuildError`: there is none, or it is a chip's, which its user compiles.
    """
    capabilities(program)
    if program.target != V1MODEL:
        raise UnknownBuildError(f"no build of the program {program} ships with ina")
    return compiled(program.values, program.mode)
