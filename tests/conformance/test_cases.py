"""Every conformance case, on every device that this machine has."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from ina.p4 import names
from ina.p4.builds import builds_of
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS, DropReason
from ina.tables import values as tables
from ina.testing.case import Arrival, Case, run_case
from ina.testing.cases import TOPICS, all_cases
from ina.testing.device import Device
from ina.testing.model_device import ModelDevice
from tests.selection import LONG

CASES = [case for values in VALUES_PER_PACKET_BUILDS for case in all_cases(values)]
# The program of mode shared has all of pool's cases, and its own.
SHARED_CASES = [
    case for values in VALUES_PER_PACKET_BUILDS for case in all_cases(values, names.SHARED)
]
# So has that of mode stream.
STREAM_CASES = [
    case for values in VALUES_PER_PACKET_BUILDS for case in all_cases(values, names.STREAM)
]
# Those of modes roce and transparent have pool's in other framings, in builds of their own.
ROCE_BUILDS = builds_of(names.ROCE)
ROCE_CASES = [case for values in ROCE_BUILDS for case in all_cases(values, names.ROCE)]
RING_BUILDS = builds_of(names.TRANSPARENT)
RING_CASES = [case for values in RING_BUILDS for case in all_cases(values, names.TRANSPARENT)]
SMALLEST, LARGEST = min(VALUES_PER_PACKET_BUILDS), max(VALUES_PER_PACKET_BUILDS)


def whole(cases: list[Case], *builds: int) -> list[Case]:
    """All of these builds; of the others what depends on how many values a packet has."""
    of_size = ("sum", "completion", "malformed")
    return [case for case in cases if case.values in builds or case.name.startswith(of_size)]


def of_mode(cases: list[Case]) -> list[Case]:
    """All of the smallest build; of the others what only the mode's program has."""
    return [case for case in cases if case.values == SMALLEST or case.mode != names.POOL]


def of_smallest(cases: list[Case]) -> list[Case]:
    """All of a mode's smallest build alone."""
    smallest = min(case.values for case in cases)
    return [case for case in cases if case.values == smallest]


# In the soft switch's pipeline each build is another program, but all come of one source by one
# generator: the builds between, and what mode shared has of pool's, are whole in make test-long.
# The reference is the same for all builds, and BMv2 slow.
# Through the soft switch's ports those of one build; more is only more of the same port loop.
DEVICES = {
    "model": whole(CASES, 64, 256) if LONG else whole(CASES, SMALLEST),
    "model_shared": of_mode(SHARED_CASES),
    "soft": CASES if LONG else whole(CASES, SMALLEST, LARGEST),
    "soft_shared": SHARED_CASES if LONG else of_mode(SHARED_CASES),
    "model_stream": of_mode(STREAM_CASES),
    "soft_stream": STREAM_CASES if LONG else of_mode(STREAM_CASES),
    "model_roce": ROCE_CASES if LONG else of_smallest(ROCE_CASES),
    "soft_roce": ROCE_CASES if LONG else of_smallest(ROCE_CASES),
    "model_transparent": RING_CASES if LONG else of_smallest(RING_CASES),
    "soft_transparent": RING_CASES if LONG else of_smallest(RING_CASES),
    "soft_veth": all_cases(SMALLEST),
    # Each case has the kernel verify the program anew.
    "xdp": whole(CASES, 64, 256, 360) if LONG else all_cases(SMALLEST)[::8],
    "xdp_shared": [
        case
        for case in of_mode(SHARED_CASES)
        if (case.values != LARGEST if LONG else case.values == SMALLEST and case.mode != names.POOL)
    ],
    "xdp_stream": [case for case in of_mode(STREAM_CASES) if case.values != LARGEST]
    if LONG
    else [
        case for case in STREAM_CASES if case.values == SMALLEST and case.name.startswith("stream/")
    ],
    "xdp_veth": all_cases(SMALLEST)
    if LONG
    else [case for case in all_cases(SMALLEST) if case.name.startswith(("shared/", "stranger/"))],
    "bmv2": whole(CASES, 64, 256),
    "bmv2_shared": of_mode(SHARED_CASES),
    "bmv2_roce": of_smallest(ROCE_CASES),
    "bmv2_transparent": of_smallest(RING_CASES),
    "bmv2_stream": [case for case in STREAM_CASES if case.values == SMALLEST],
}
if os.environ.get("INA_DEVICE"):
    DEVICES["named"] = CASES


@pytest.mark.parametrize(
    ("device", "case"),
    [
        pytest.param(
            device,
            case,
            id=f"{device}-{case.values}-{case.name}",
            marks=[pytest.mark.bmv2] if device.startswith("bmv2") else [],
        )
        for device, cases in DEVICES.items()
        for case in cases
    ],
)
def test_case(device: str, case: Case, request: pytest.FixtureRequest) -> None:
    verdict = run_case(case, request.getfixturevalue(device))
    if verdict.skipped:
        pytest.skip(verdict.skipped)
    assert verdict.differences == (), case.about


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        *((names.SHARED, values) for values in VALUES_PER_PACKET_BUILDS),
        (names.ROCE, ROCE_BUILDS[0]),
        (names.TRANSPARENT, RING_BUILDS[0]),
    ],
)
def test_names_are_unique(mode: str, values: int) -> None:
    found = Counter(case.name for case in all_cases(values, mode))
    assert [name for name, count in found.items() if count > 1] == []


def test_the_cases_reach_every_drop_reason_and_every_outcome() -> None:
    """Read from what they expect, so that a case that is lost is missed."""
    expected = {
        (ref.name.rpartition(".")[2], ref.index)
        for case in all_cases(64, names.SHARED)
        for ref, count in case.counts.items()
        if isinstance(ref, tables.Counter) and count not in (0, (0, 0))
    }
    assert {("drops", reason) for reason in DropReason} <= expected
    job_counters = {name for name, _ in expected}
    assert job_counters >= {
        *("job_contributions", "job_results", "job_replays", "job_duplicates", "job_stale"),
        *("job_ecn_marks", "job_unaddressed"),
        *("job_flushes", "job_collisions", "job_bypassed", "job_late"),
        *("job_missed", "job_evictions"),
    }
    assert Counter(getattr(it, "MODE", "") for it in TOPICS) == {
        "": 10,
        names.SHARED: 5,
        names.STREAM: 1,
        names.ROCE: 1,
        names.TRANSPARENT: 1,
    }


def spoilt(case: Case) -> list[Case]:
    """The case with one expectation changed: a frame too few, a bit, another port, a count."""
    steps = list(case.steps)
    at = max(i for i, step in enumerate(steps) if isinstance(step, Arrival) and step.out)
    arrival = steps[at]
    assert isinstance(arrival, Arrival)
    (port, frame), *others = arrival.out
    flipped = frame[:-1] + bytes([frame[-1] ^ 1])
    changes = [
        arrival.gives(*others),
        arrival.gives((port, flipped), *others),
        arrival.gives((port + 100, frame), *others),
        arrival.gives((port, frame), *arrival.out),
    ]
    wrong_steps = [
        replace(case, steps=(*steps[:at], change, *steps[at + 1 :])) for change in changes
    ]
    ref = next(iter(case.counts))
    wrong_count = replace(case, counts={**case.counts, ref: 99})
    silent_count = replace(case, counts={k: v for k, v in case.counts.items() if k != ref})
    return [*wrong_steps, wrong_count, silent_count]


def test_a_wrong_expectation_is_found() -> None:
    case = next(case for case in all_cases(64) if case.name == "completion/order-012")
    with ModelDevice() as device:
        assert run_case(case, device).ok
        for wrong in spoilt(case):
            assert not run_case(wrong, device).ok


def test_what_a_device_cannot_do_is_said(soft: Device) -> None:
    case = replace(all_cases(64)[0], steps=(Arrival(999, b"x" * 60),))
    assert run_case(case, soft).skipped == "soft has no port 999"
    of_shared = next(case for case in all_cases(64, names.SHARED) if case.mode == names.SHARED)
    assert run_case(of_shared, soft).skipped == "soft runs the program of mode pool"
