"""The conformance cases on the Tofino twin's controls: they do what v1model's do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ina.p4 import names
from ina.p4.compile import P4C
from ina.p4.tofino import find_tool
from ina.protocol.spec import MAX_WORKERS
from ina.protocol.switch_model import ModelJob
from ina.tables.values import AnyItem, Count, CounterRef, Entry
from ina.testing.case import Case, run_case
from ina.testing.cases import all_cases
from ina.testing.differential import Comparison, Finding, as_reference_has_it
from ina.testing.frames import PortFrame
from ina.testing.model_device import ModelDevice
from ina.testing.traffic import make_jobs
from tests.tofino.emulated import CHIPS, EmulatedTofino, compile_emulated, known

VALUES = 64
NOT_ON_TOFINO = "malformed/*-bytes-behind"
"""Its ingress does not know a frame's length."""
LONGER = "counters/everything"
"""On Tofino 1 a sum comes to its second pass with the bridge header in front: v1model's counters,
which count what came, have those bytes too."""
EVICTING = (
    *("sets/*", "claims/old-is-taken-over", "claims/by-an-older-epoch"),
    *("wanted/put-out", "shaped-claims/put-out-*", "shaped-claims/at-the-aggregator"),
)
"""In its mode shared nobody sends sets, and nobody is evicted (docs/p4_guide.md)."""
LANES = (
    "flush/[!c]*",
    "flush/co*",
    "claims/lanes-without-slot",
    "claims/newer-takes-over",
    "claims/numbers-wrap",
    "wanted/flushed",
    "wanted/not-by-lanes-without-slot",
    *("shaped-claims/flush*", "shaped-claims/alone"),
)
"""Tofino 1 has a slot here for each at the aggregator, and resends leave slots as they are."""
BUGS = {
    "levels/sum-goes-up": (
        "distribute.p4",
        "hdr.ina.contributors = hdr.bridge.worker_bit;",
        "hdr.ina.contributors = 1;",
    ),
    "levels/replay-to-one-31-3": (
        "admission.p4",
        "meta.way = hdr.ina.path & path_mask;",
        "meta.way = hdr.ina.path;",
    ),
    "address/of-another-switch": (
        "pool.p4",
        "if (own_addresses.apply().hit) {",
        "own_addresses.apply(); meta.is_ours = 1; {",
    ),
    "completion/order-012": (
        "distribute.p4",
        "hdr.bridge.pass = PASS_HARVEST_ALL;",
        "hdr.bridge.pass = PASS_HARVEST_ONE;",
    ),
}
"""By the case that notices it: file, what is right, what is wrong."""
SHARED_BUGS = {
    "claims/released": (
        "claims.p4",
        "(1, SENDER_PARENT, _): release();",
        "(1, SENDER_PARENT, _): look();",
    ),
    "flush/of-one-who-is-not-in": (
        "claims.p4",
        "meta.bitmap = meta.before | meta.worker_bit;",
        "meta.bitmap = meta.before;",
    ),
    "flush/claims-nothing": (
        "distribute.p4",
        "(ACCESS_STALE, _, 1, _, _): come_out(OUTCOME_MISSED);",
        "(ACCESS_STALE, _, 1, _, _): come_out(OUTCOME_LATE);",
    ),
    "claims/lanes-without-slot": (
        "claims.p4",
        "meta.lane_room = meta.claimable |-| meta.lane;",
        "meta.lane_room = meta.claimable;",
    ),
    "claims/taken": (
        "distribute.p4",
        "hdr.ina.contributors = meta.worker_bit;",
        "hdr.ina.contributors = meta.full_bitmap;",
    ),
    "wanted/told-with-the-sum": (
        "shared.p4",
        "if (meta.bitmap != 0 OR_COLLIDES(meta)) {",
        "if (meta.bitmap != 0) {",
    ),
    "wanted/not-by-resends": (
        "claims.p4",
        "#define IS_ANEW(meta) ((meta).is_resend == 0)",
        "#define IS_ANEW(meta) true",
    ),
}
"""The same of mode shared, on Tofino 2."""

PACKETS = 20_000
_IP_AT, _TOTAL_AT = 12, slice(16, 18)  # the ethertype; the IP packet's length

pytestmark = pytest.mark.p4c


def bytes_behind(frame: bytes) -> bool:
    """Whether the frame goes on behind its IP packet."""
    is_ip = frame[_IP_AT : _IP_AT + 2] == b"\x08\x00"
    return is_ip and len(frame) > 14 + int.from_bytes(frame[_TOTAL_AT], "big")


def judged(frames: Sequence[PortFrame]) -> list[PortFrame]:
    """Without those that a Tofino cannot judge (NOT_ON_TOFINO)."""
    return [(port, frame) for port, frame in frames if not bytes_behind(frame)]


def packets_alone(counts: Sequence[Count]) -> list[Count]:
    """Without bytes (LONGER)."""
    return [Count(packets, 0) for packets, _ in counts]


def jobs_for_tofino(rng: random.Random, *args: Any) -> list[ModelJob]:
    """Without sets, and whose slots seem to be heard of when they are."""
    jobs = []
    for job in make_jobs(rng, *args):
        bits = [1 << bit for bit in rng.sample(range(MAX_WORKERS), len(job.workers))]
        claims = replace(job.claims, lead_us=0) if job.claims else None
        jobs.append(replace(job, sets=frozenset(), bits=tuple(bits), claims=claims))
    return jobs


class Model(ModelDevice):
    """The reference, on the twin's terms."""

    def process(self, frames: Sequence[PortFrame]) -> list[PortFrame]:
        return super().process(judged(frames))

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        return packets_alone(super().counts(refs))

    def insert(self, items: Sequence[AnyItem]) -> None:
        super().insert(known(items))

    def delete(self, items: Sequence[AnyItem]) -> None:
        super().delete(known(items))


class KeepsValues(Model):
    """The same of Tofino 1, where no copy loses its values."""

    def insert(self, items: Sequence[AnyItem]) -> None:
        super().insert(list(map(keeping_values, items)))

    def delete(self, items: Sequence[AnyItem]) -> None:
        super().delete(list(map(keeping_values, items)))


def keeping(case: Case, model: KeepsValues) -> Case:
    """A case of shapes as Tofino 1 has it."""
    if not case.name.startswith("shape"):
        return case
    return replace(case, steps=as_reference_has_it(case, model).steps)


def keeping_values(item: AnyItem) -> AnyItem:
    """A row of receivers without shapes of which copies lose their values."""
    if not isinstance(item, Entry) or item.table != names.RECEIVERS:
        return item
    params = dict(item.params) | {"strips_on": 0, "strips_off": 0}
    return structs.replace(item, params=tuple(params.items()))


class Twin(EmulatedTofino):
    """The twin's controls."""

    def process(self, frames: Sequence[PortFrame]) -> list[PortFrame]:
        return super().process(judged(frames))

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        return packets_alone(super().counts(refs))


def found_by_random_packets(
    target: str,
    folder: Path,
    bug: tuple[str, str, str] | None = None,
    mode: str = names.POOL,
) -> tuple[Finding | None, Comparison]:
    """What the first of PACKETS random packets finds that the twin treats as the model does not."""
    if find_tool(P4C, "INA_P4C") is None:
        pytest.skip(f"{P4C} is not on PATH")
    program = compile_emulated(target, VALUES, folder, bug, mode)
    reference = KeepsValues if target == "tofino" else Model
    with reference(mode) as model, Twin(mode, program_of=lambda _values: program) as twin:
        comparison = Comparison(model, twin, VALUES, seed=11)
        return comparison.run(PACKETS), comparison


def wrong_cases(
    target: str,
    folder: Path,
    topic: str = "*",
    bug: tuple[str, str, str] | None = None,
    mode: str = names.POOL,
) -> set[str]:
    """Names and first differences of the topic's cases that fail; `bug`: see compile_emulated."""
    if find_tool(P4C, "INA_P4C") is None:
        pytest.skip(f"{P4C} is not on PATH")
    left_out = (NOT_ON_TOFINO, *EVICTING, *([LONGER, *LANES] if target == "tofino" else []))
    cases = [
        case
        for case in all_cases(VALUES, mode)
        if fnmatch(case.name, topic)
        and not any(fnmatch(case.name, pattern) for pattern in left_out)
    ]
    assert len(cases) > (290 if topic == "*" else 0)
    if target == "tofino":
        model = KeepsValues(mode)
        with model:
            cases = [keeping(case, model) for case in cases]
    program = compile_emulated(target, VALUES, folder, bug, mode)
    with EmulatedTofino(mode, program_of=lambda _values: program) as device:
        verdicts = [run_case(case, device) for case in cases]
    return {f"{v.case.name}: {v.differences[0]}" for v in verdicts if v.differences}


@pytest.mark.parametrize("target", sorted(CHIPS))
def test_the_twin_does_what_the_cases_say(target: str, tmp_path: Path) -> None:
    assert wrong_cases(target, tmp_path) == set()


@pytest.mark.parametrize(("noticed_by", "bug"), BUGS.items())
def test_a_bug_of_the_twins_own_is_noticed(
    noticed_by: str, bug: tuple[str, str, str], tmp_path: Path
) -> None:
    topic = noticed_by.partition("/")[0] + "/*"
    failed = {line.partition(":")[0] for line in wrong_cases("tofino", tmp_path, topic, bug)}
    assert noticed_by in failed


@pytest.mark.parametrize("target", sorted(CHIPS))
def test_the_twin_of_mode_shared_does_what_the_cases_say(target: str, tmp_path: Path) -> None:
    assert wrong_cases(target, tmp_path, mode=names.SHARED) == set()


@pytest.mark.parametrize(("noticed_by", "bug"), SHARED_BUGS.items())
def test_a_bug_in_what_mode_shared_chooses_is_noticed(
    noticed_by: str, bug: tuple[str, str, str], tmp_path: Path
) -> None:
    topic = noticed_by.partition("/")[0] + "/*"
    wrong = wrong_cases("tofino2", tmp_path, topic, bug, names.SHARED)
    assert noticed_by in {line.partition(":")[0] for line in wrong}


def test_random_packets_to_shared_slots_find_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ina.testing.differential.make_jobs", jobs_for_tofino)
    finding, comparison = found_by_random_packets("tofino2", tmp_path, mode=names.SHARED)
    assert finding is None, finding.differences
    assert comparison.tally.packets == PACKETS
    assert comparison.tally.left > PACKETS // 10


@pytest.mark.parametrize("target", sorted(CHIPS))
def test_random_packets_find_no_difference(target: str, tmp_path: Path) -> None:
    finding, comparison = found_by_random_packets(target, tmp_path)
    assert finding is None, finding.differences
    assert comparison.tally.packets == PACKETS
    assert comparison.tally.left > PACKETS // 10
    assert comparison.tally.counters > 100


def test_random_packets_find_a_sum_under_another_name(tmp_path: Path) -> None:
    finding, _ = found_by_random_packets("tofino2", tmp_path, BUGS["levels/sum-goes-up"])
    assert finding is not None
