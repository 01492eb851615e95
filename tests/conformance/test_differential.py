"""Random packets to two devices; what is found is written, and found again."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from ina import modes
from ina.p4 import names
from ina.protocol.codec import decode_header
from ina.protocol.errors import PacketError
from ina.protocol.spec import HEADER_BYTES, DropReason, Shape
from ina.tables import values as tables
from ina.tables.values import CounterRef
from ina.testing.case import Arrival, run_case
from ina.testing.case_file import load_case, save_case, save_finding
from ina.testing.cases import all_cases
from ina.testing.device import Ability, Device
from ina.testing.differential import (
    EPISODE_PACKETS,
    SIZES,
    SLOTS,
    Comparison,
    Finding,
    as_reference_has_it,
    disagreement,
    still_differs,
)
from ina.testing.errors import CaseFileError, DeviceError
from ina.testing.frames import parse
from ina.testing.minimise import minimise
from ina.testing.model_device import ModelDevice
from ina.testing.traffic import Traffic, make_jobs
from tests.selection import LONG

MODELS = {
    names.POOL: "model",
    names.SHARED: "model_shared",
    names.STREAM: "model_stream",
    names.ROCE: "model_roce",
    names.TRANSPARENT: "model_transparent",
}
TIMES = 20 if LONG else 1
"""100,000 packets of the smallest build in ``make test-long``."""


@pytest.mark.parametrize(
    ("device", "values", "packets"),
    [
        ("soft", 64, 5_000),
        ("soft", 256, 2_500),
        ("soft", 360, 2_500),
        ("soft", 1024, 2_500),
        ("soft_shared", 64, 5_000),
        ("soft_shared", 256, 2_500),
        ("soft_stream", 64, 5_000),
        ("soft_stream", 360, 2_500),
        ("soft_roce", 56, 5_000),
        *([("soft_roce", 248, 2_500)] if LONG else []),
        ("soft_transparent", 56, 5_000),
        *([("soft_transparent", 248, 2_500)] if LONG else []),
        ("soft_veth", 64, 2_500),
        ("xdp", 64, 5_000),
        ("xdp", 360, 500),
        ("xdp_shared", 64, 2_000),
        ("xdp_stream", 64, 1_000),
        ("xdp_veth", 64, 500),
        pytest.param("bmv2", 64, 5_000, marks=pytest.mark.bmv2),
        pytest.param("bmv2", 256, 2_500, marks=pytest.mark.bmv2),
        pytest.param("bmv2", 360, 1_000, marks=pytest.mark.bmv2),
        pytest.param("bmv2", 1024, 500, marks=pytest.mark.bmv2),
        pytest.param("bmv2_shared", 64, 5_000, marks=pytest.mark.bmv2),
        pytest.param("bmv2_roce", 56, 5_000, marks=pytest.mark.bmv2),
        pytest.param("bmv2_transparent", 56, 5_000, marks=pytest.mark.bmv2),
        pytest.param("bmv2_stream", 64, 5_000, marks=pytest.mark.bmv2),
    ],
)
def test_no_difference(
    device: str, values: int, packets: int, request: pytest.FixtureRequest
) -> None:
    """The traffic goes everywhere: every outcome of every job, every reason to drop a packet."""
    under_test = request.getfixturevalue(device)
    is_shared = under_test.mode == names.SHARED
    model = request.getfixturevalue(MODELS[under_test.mode])
    comparison = Comparison(model, under_test, values, seed=11)
    counted: Counter[CounterRef] = Counter()
    of_shared: Counter[str] = Counter()
    for episode in range(TIMES * -(-packets // EPISODE_PACKETS)):
        finding = comparison.episode(episode, min(packets, EPISODE_PACKETS))
        assert finding is None, finding.differences if finding else ""
        counted.update({ref: under_test.counts([ref])[0][0] for ref in COUNTED})
        for ref in OF_SHARED if is_shared else ():
            of_shared[ref.name] += under_test.counts([ref])[0][0]
    assert comparison.tally.packets == TIMES * packets
    assert comparison.tally.left > TIMES * packets // 10
    assert comparison.tally.counters > 100
    if packets >= EPISODE_PACKETS and not is_shared:
        assert [ref for ref in EVERYWHERE if not counted[ref]] == []
        passed_down = [counted[tables.Counter(names.JOB_PASSED_DOWN, job)] for job in JOBS]
        assert any(passed_down) == modes.of(under_test.mode).has_trees
    if is_shared:  # what pools do is as it was
        assert [name for name in names.SHARED_JOB_COUNTERS if not of_shared[name]] == []


JOBS = range(len(SIZES))
EVERYWHERE: list[CounterRef] = [
    *(tables.Counter(names.JOB_RESULTS, job) for job in JOBS),
    *(
        tables.Counter(name, job)
        for name in (
            *(names.JOB_CONTRIBUTIONS, names.JOB_REPLAYS, names.JOB_DUPLICATES, names.JOB_STALE),
        )
        for job in JOBS[1:]
    ),
    *(tables.Counter(names.DROPS, reason) for reason in DropReason),
]
COUNTED = [*EVERYWHERE, *(tables.Counter(names.JOB_PASSED_DOWN, job) for job in JOBS)]
"""And what only a switch with a parent does; chance decides which jobs have one."""
OF_SHARED = [tables.Counter(name, job) for name in names.SHARED_JOB_COUNTERS for job in JOBS]


class Forgetful(ModelDevice):
    """A model that loses every frame whose last byte is 0x2A."""

    name = "forgetful"

    def process(self, frames: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:  # type: ignore[override]
        return super().process([f for f in frames if not f[1].endswith(b"\x2a")])


@pytest.fixture(scope="module")
def finding() -> Finding:
    """What random traffic finds between the model and a model with a fault."""
    with ModelDevice() as model, Forgetful() as wrong:
        found = Comparison(model, wrong, 64, seed=2).run(20_000)
        assert found is not None
        return minimise(found, model, wrong, budget_s=60.0)


def test_a_difference_is_found_and_minimised(finding: Finding) -> None:
    arrivals = [step for step in finding.case.steps if isinstance(step, Arrival)]
    assert 1 <= len(arrivals) <= 3
    assert any(arrival.frame.endswith(b"\x2a") for arrival in arrivals)
    with ModelDevice() as model, Forgetful() as wrong:
        assert still_differs(finding.case, model, wrong) is not None
        assert run_case(finding.case, model).ok


def test_an_episode_comes_again_with_its_seed() -> None:
    with ModelDevice() as model, Forgetful() as wrong:
        runs = [Comparison(model, wrong, 64, seed=2).run(20_000) for _ in range(2)]
    assert runs[0] == runs[1] != None  # noqa: E711


@pytest.mark.parametrize(("mode", "values"), [(names.SHARED, 256), (names.STREAM, 360)])
def test_what_a_device_has_no_room_for_is_not_tried(mode: str, values: int) -> None:
    """BMv2 would end."""
    short = ModelDevice(mode=mode)
    short.abilities -= {Ability.GROWTH}
    with pytest.raises(DeviceError, match=rf"mode '{mode}' with {values} values needs room behind"):
        Comparison(ModelDevice(mode=mode), short, values).run(100)


def test_packets_of_devices_that_have_no_room_leave_as_they_came() -> None:
    """Changed ones, too: each without values is of a sum."""
    rng = random.Random(1)
    traffic = Traffic(rng, 256, make_jobs(rng, list(SIZES), list(SLOTS), names.POOL), grows=False)
    bare = 0
    for number in range(4000):
        _, frame = traffic._contribution({} if number % 2 else None)
        payload = parse(frame).payload
        with suppress(PacketError):  # of those that are changed: what is no header has no shape
            if len(payload) == HEADER_BYTES:
                assert decode_header(payload).shape == Shape.SUM
                bare += 1
    assert bare > 100


def test_a_finding_is_written_and_replayed(finding: Finding, tmp_path: Path) -> None:
    with Forgetful() as wrong:
        files = save_finding(finding, "10.0.0.1:9559,1", wrong, tmp_path / "found")
        assert [path.name for path in files] == [
            *("case.json", "in.pcap", "expected.pcap", "10_0_0_1_9559_1.pcap")
        ]
        case = load_case(files[0])
        assert case == finding.case
        assert run_case(case, wrong).differences == finding.differences
    arrived = [bytes(data) for data, _ in RawPcapReader(str(files[1]))]
    assert arrived == [step.frame for step in case.steps if isinstance(step, Arrival)]


def test_every_case_survives_its_file(model: Device, tmp_path: Path) -> None:
    changed = [case for case in all_cases(64) if "modified" in case.name]
    assert changed
    for case in (*all_cases(64)[::7], *changed):
        told = as_reference_has_it(case, model)
        save_case(told, tmp_path / "case.json")
        again = load_case(tmp_path / "case.json")
        assert replace(again, counts={}) == replace(told, counts={})
        assert run_case(again, model).ok or again.lacks(model)


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"format": "ina-case-9"}', "\x00\xff", '{"format": 3}']
)
def test_files_that_are_no_case(content: str, tmp_path: Path) -> None:
    path = tmp_path / "no.json"
    path.write_text(content)
    with pytest.raises(CaseFileError, match=r"no\.json"):
        load_case(path)


def test_copies_of_one_frame_may_leave_in_any_order_and_frames_may_not() -> None:
    a, b = b"a" * 60, b"b" * 60
    one = [Arrival(1, b"x", ((4, a), (4, b)))]
    assert disagreement(one, [(4, b), (4, a)]) == ""
    two = [Arrival(1, b"x", ((4, a),)), Arrival(1, b"y", ((4, b),))]
    assert disagreement(two, [(4, a), (4, b)]) == ""
    assert disagreement(two, [(4, b), (4, a)])
    assert disagreement(two, [(4, a)])
    assert disagreement(two, [(4, a), (4, b), (4, b)])
    assert disagreement(two, [(4, a), (4, b), (5, b)])
