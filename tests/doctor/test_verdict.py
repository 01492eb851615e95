"""Which hop is named, for what a probe saw and what the switch counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ina.doctor.evidence import Evidence, read_evidence
from ina.doctor.probe import Echo
from ina.doctor.verdict import BothEnds, judge_full, judge_small
from ina.rpc import controller_pb2 as pb2

WAY = BothEnds("10.0.0.2", "10.0.0.1:17760")
GOOD = Echo(0, sent=10, answered=10, round_trips_s=[1e-4] * 10)
NONE = Echo(0, sent=10)
FULL = Echo(256, sent=10)
NOTHING_SEEN = Evidence(drops={"member": 0, "malformed": 0})


@pytest.mark.parametrize(
    ("echo", "evidence", "words"),
    [
        (NONE, NOTHING_SEEN, ["lost on the way there", "10.0.0.2"]),
        (NONE, Evidence(from_worker=10, results=10, to_worker=10), ["lost on the way back"]),
        (NONE, Evidence(from_worker=10), ["admitted 10 packets and no result was sent"]),
        (NONE, Evidence(from_worker=10, unaddressed=10), ["no receiver entry"]),
        (NONE, Evidence(drops={"member": 10}), ["10 as member", "NAT"]),
        (NONE, Evidence(drops={"malformed": 10}), ["10 as malformed", "fragments"]),
        (NONE, Evidence(drops={"job": 10}), ["10 as job"]),
        (NONE, None, ["cannot be read", "INA_OPERATOR_TOKEN"]),
        (replace(NONE, refused=9), NOTHING_SEEN, ["nobody listens"]),
        (replace(NONE, unsent="Network is unreachable"), None, ["10.0.0.2 cannot send", "route"]),
        (replace(GOOD, answered=7), NOTHING_SEEN, ["3 of 10 lost"]),
    ],
)
def test_small_packets(echo: Echo, evidence: Evidence | None, words: list[str]) -> None:
    step = judge_small(echo, evidence, WAY)
    assert not step.ok
    for word in words:
        assert word in f"{step.found} -> {step.advice}"
    assert step.advice


def test_all_answered_is_ok() -> None:
    assert judge_small(GOOD, None, WAY).ok
    assert judge_full(replace(FULL, answered=10, round_trips_s=[1e-4]), GOOD, None, WAY).ok


@pytest.mark.parametrize(
    ("echo", "evidence", "words"),
    [
        (replace(FULL, too_long=10, mtu_bytes=600), None, ["MTU is 600", "build with 64 values"]),
        (
            Echo(360, sent=10, too_long=10, mtu_bytes=1400),
            None,
            ["1500 bytes (360 values)", "build with 256 values"],
        ),
        (replace(FULL, too_long=10, mtu_bytes=200), None, ["MTU is 200", "raise the MTU to 1084"]),
        (replace(FULL, mtu_bytes=600), NOTHING_SEEN, ["MTU is 600"]),
        (FULL, NOTHING_SEEN, ["10.0.0.2 to 10.0.0.1:17760", "ICMP is filtered"]),
        (FULL, Evidence(from_worker=10, to_worker=10), ["10.0.0.1:17760 to 10.0.0.2"]),
        (FULL, None, ["either way"]),
        (replace(FULL, answered=4), None, ["6 of 10 lost"]),
    ],
)
def test_full_packets_when_small_ones_pass(
    echo: Echo, evidence: Evidence | None, words: list[str]
) -> None:
    step = judge_full(echo, GOOD, evidence, WAY)
    assert not step.ok
    for word in words:
        assert word in f"{step.found} -> {step.advice}"


@pytest.mark.parametrize(
    ("values", "mtu_bytes", "words"),
    [
        # 4.250 bytes a value on the wire with 360, 4.352 with 256, 4.088 with 1024
        (256, 1500, ["MTU of 1500", "360 values", "2.5% fewer"]),
        (360, 9000, ["MTU of 9000", "1024 values", "4.1% fewer"]),
        (256, 1491, []),
        (360, 1500, []),
        (1024, 65535, []),
        (256, 0, []),  # the kernel does not know
    ],
)
def test_a_larger_build_is_proposed_where_the_mtu_bears_it(
    values: int, mtu_bytes: int, words: list[str]
) -> None:
    echo = Echo(values, sent=10, answered=10, round_trips_s=[1e-4], mtu_bytes=mtu_bytes)
    step = judge_full(echo, GOOD, None, WAY)
    assert step.ok
    assert bool(step.advice) == bool(words)
    for word in words:
        assert word in step.advice


def test_no_smaller_build_is_proposed_where_there_is_none() -> None:
    step = judge_full(Echo(64, sent=10, too_long=10, mtu_bytes=200), GOOD, None, WAY)
    assert "build" not in step.advice


def test_full_packets_that_fail_as_small_ones_did_name_the_same_hop() -> None:
    step = judge_full(FULL, NONE, NOTHING_SEEN, WAY)
    assert "lost on the way there" in step.found


def test_evidence_is_the_difference_of_two_readings_of_the_own_job() -> None:
    def reading(packets: int) -> pb2.ShowSwitchReply:
        return pb2.ShowSwitchReply(
            counters=[
                pb2.Counter(name="member_packets", label="job doc rank 0", packets=packets),
                pb2.Counter(name="member_packets", label="job other rank 0", packets=99),
                pb2.Counter(name="receiver_results", label="job doc rank 0", packets=packets + 1),
                pb2.Counter(name="job_results", label="job doc", packets=packets + 2),
                pb2.Counter(name="drops", label="member", packets=packets + 3),
            ]
        )

    seen = read_evidence(reading(12), "doc") - read_evidence(reading(5), "doc")
    assert seen == Evidence(7, 7, 7, 0, {"member": 7})


def receiver(job: str, index: int, label: str, packets: int) -> pb2.Counter:
    return pb2.Counter(
        name="receiver_results", job=job, index=index, label=f"job {job} {label}", packets=packets
    )


@pytest.mark.parametrize("label", ["rank 255", "IP multicast"])
def test_results_that_workers_share_went_to_the_worker(label: str) -> None:
    """However the controller calls them: what the switch sent is lost on the way back."""
    shared = [receiver("doc", 255, label, 8), receiver("other", 255, label, 50)]
    reply = pb2.ShowSwitchReply(counters=[receiver("doc", 0, "rank 0", 2), *shared])
    evidence = read_evidence(reply, "doc")
    assert evidence.to_worker == 10
    only_shared = read_evidence(pb2.ShowSwitchReply(counters=shared), "doc")
    assert only_shared.to_worker == 8
    step = judge_small(NONE, replace(only_shared, from_worker=8), WAY)
    assert "the switch sent 8 results to 10.0.0.2" in step.found
