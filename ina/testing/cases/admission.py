"""Who may contribute: the job, epoch, worker, address and port that were installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ina.protocol.spec import DropReason, Kind
from ina.testing.case import Arrival, Case, ItemChange
from ina.testing.cases.actors import STRANGER_PORT, Team, tally, team
from ina.testing.frames import SWITCH_IPV4, parse
from ina.testing.state import job_entry, member_entry, own_address, receiver_entry

_FIELDS: tuple[tuple[str, int, DropReason], ...] = (
    *(("version", version, DropReason.VERSION) for version in (0, 1, 15)),
    *(("kind", kind, DropReason.KIND) for kind in (0, 3, 4, 5, 6, 15)),
    ("kind", Kind.RESULT, DropReason.MEMBER),  # no parent of this job
    *(("job", job, DropReason.JOB) for job in (0, 2, 0x101, 0xFFFF)),
    *(("epoch", epoch, DropReason.JOB) for epoch in (0, 8, 10, 0x109, 0xFFFF)),
    *(("worker", worker, DropReason.MEMBER) for worker in (1, 3, 31, 32, 128, 255)),
    *(("slot", slot, DropReason.SLOT) for slot in (8, 9, 0x100, 0xFFFF)),
)


def cases(values: int) -> Iterator[Case]:
    """Every reason to refuse, its order, and that a refusal changes nothing."""
    for name, value, reason in _FIELDS:
        yield refused(values, f"refused/{name}-{value}", reason, **{name: value})
    yield from order(values)
    yield from strangers(values)
    yield from lifecycle(values)


def honest_round(them: Team, seq: int = 0) -> tuple[Arrival, ...]:
    """All contribute, all get the sum."""
    *first, last = them.ranks
    sums = [len(them.ranks)] * them.values
    return (
        *(them.sends(rank, seq, them.ones()) for rank in first),
        them.sends(last, seq, them.ones()).gives(*them.results(seq, sums)),
    )


def refused(values: int, name: str, reason: DropReason, **fields: Any) -> Case:
    """Worker 0 sends a packet with wrong fields; then the round goes on as if it had not."""
    them = team(values)
    return Case(
        name,
        f"Dropped and counted as {reason.name}; no slot is changed.",
        values,
        them.state,
        (them.sends(0, 0, them.numbers(1), **fields), *honest_round(them)),
        tally(them, contributions=3, results=1, drops={reason: 1}),
    )


def order(values: int) -> Iterator[Case]:
    """The first check that fails is the one that is counted."""
    wrong = {"version": 7, "kind": 9, "job": 77, "worker": 30, "slot": 0xFFF0}
    reasons = (
        DropReason.VERSION,
        DropReason.KIND,
        DropReason.JOB,
        DropReason.MEMBER,
        DropReason.SLOT,
    )
    fields = list(wrong)
    for position, reason in enumerate(reasons):
        still_wrong = {name: wrong[name] for name in fields[position:]}
        yield refused(values, f"refused/first-reason-{reason.name}", reason, **still_wrong)
    everything = {**wrong, "value_count": 1}
    yield refused(values, "refused/first-reason-MALFORMED", DropReason.MALFORMED, **everything)


def strangers(values: int) -> Iterator[Case]:
    """A packet that is right in all but where it comes from."""
    them = team(values)
    at = them.job.workers[0]
    good = them.frame(0, 0, them.numbers(1))
    for name, port, frame in (
        ("another-worker's-port", 2, good),
        ("a-port-without-workers", STRANGER_PORT, good),
        ("another-worker's-address", at.port, replace(good, src_ipv4=at.ipv4 + 1)),
        ("a-strange-address", at.port, replace(good, src_ipv4=0xC0A8_0001)),
        ("address-0", at.port, replace(good, src_ipv4=0)),
        ("another-udp-port", at.port, replace(good, src_udp=at.udp_port + 1)),
        ("the-switch's-udp-port", at.port, replace(good, src_udp=17760)),
    ):
        yield Case(
            f"stranger/{name}",
            "Port, address and UDP port must be those of the worker that the packet names.",
            values,
            them.state,
            (Arrival(port, frame.build()), *honest_round(them)),
            tally(them, contributions=3, results=1, drops={DropReason.MEMBER: 1}),
        )
    other = team(values, 2, number=2, first_slot=64)
    forged = replace(
        them.frame(0, 0, them.ones()),
        src_ipv4=other.job.workers[0].ipv4,
        src_udp=other.job.workers[0].udp_port,
    )
    yield Case(
        "stranger/a-worker-of-another-job",
        "A worker of one job cannot speak for another job.",
        values,
        (*them.state, *other.state),
        (Arrival(1, forged.build()), *honest_round(them), *honest_round(other)),
        {
            **tally(them, contributions=3, results=1),
            **tally(other, contributions=2, results=1, drops={DropReason.MEMBER: 1}),
        },
    )
    one = team(values, 1)
    sent, (_, reply) = one.frame(0, 0, one.ones()), one.result(0, 0, one.ones())
    _, again = one.replay(0, 0, one.ones())
    second = 0xC0A8_0101
    yield Case(
        "stranger/to-any-address-of-the-switch",
        "The switch answers from the address that the contribution was sent to.",
        values,
        (own_address(), own_address(second), *one.state),
        tuple(
            Arrival(1, replace(sent, dst_ipv4=address, dst_mac=mac, ttl=ttl).build()).gives(
                (1, replace(parse(answer), src_ipv4=address, src_mac=mac, checksum=None).build())
            )
            for answer, address, mac, ttl in (
                (reply, SWITCH_IPV4, 0x0200_0000_00FE, 1),
                (again, second, 0x0202_0202_0202, 255),
            )
        ),
        tally(one, contributions=1, results=1, replays=1),
    )


def lifecycle(values: int) -> Iterator[Case]:
    """Entries come and go while packets arrive."""
    them = team(values, 2)
    ones = them.ones()
    yield Case(
        "lifecycle/nothing-installed",
        "A switch without jobs refuses all, and keeps nothing.",
        values,
        (),
        (them.sends(0, 0, ones), ItemChange(insert=them.state), *honest_round(them)),
        tally(them, contributions=2, results=1, drops={DropReason.JOB: 1}),
    )
    yield Case(
        "lifecycle/job-removed",
        "Without its job entry a job's packets are refused.",
        values,
        them.state,
        (
            *honest_round(them),
            ItemChange(delete=(job_entry(them.job),)),
            them.sends(0, 0, ones),
            them.sends(1, 1, ones),
        ),
        tally(them, contributions=2, results=1, drops={DropReason.JOB: 2}),
    )
    yield Case(
        "lifecycle/member-removed",
        "Without its member entry one worker's packets are refused; what is in the slot stays.",
        values,
        them.state,
        (
            them.sends(0, 0, ones),
            ItemChange(delete=(member_entry(them.job, 0),)),
            them.sends(0, 0, ones),
            them.sends(1, 0, ones).gives(*them.results(0, [2] * values)),
        ),
        tally(them, contributions=2, results=1, drops={DropReason.MEMBER: 1}),
    )
    yield from moves(values)


def moves(values: int) -> Iterator[Case]:
    """Receivers go, jobs move and grow."""
    them = team(values, 2)
    ones = them.ones()
    yield Case(
        "lifecycle/receiver-removed",
        "A copy that nobody is to receive is counted and dropped; the others leave.",
        values,
        them.state,
        (
            ItemChange(delete=(receiver_entry(them.job, 1),)),
            them.sends(0, 0, ones),
            them.sends(1, 0, ones).gives(them.result(0, 0, [2] * values)),
        ),
        tally(them, contributions=2, results=1, unaddressed=1),
    )
    moved = replace(them, job=replace(them.job, epoch=them.job.epoch + 1, first_slot=100))
    grown = team(values, 3, epoch=them.job.epoch + 2, first_slot=100)
    yield Case(
        "lifecycle/moved-and-grown",
        "A job is moved to other slots, then admitted with one worker more.",
        values,
        them.state,
        (
            *honest_round(them, 5),
            ItemChange(them.state[::-1], moved.state),
            *honest_round(moved, 0),
            *honest_round(moved, 5),
            ItemChange(moved.state[::-1], grown.state),
            *honest_round(grown, 0),
            grown.sends(2, 5, ones),
        ),
        tally(grown, contributions=10, results=4),
    )
    yield Case(
        "lifecycle/result-is-not-a-contribution",
        "A result that comes back to the switch is refused.",
        values,
        them.state,
        (
            *honest_round(them),
            them.sends(0, 0, ones, kind=Kind.RESULT, contributors=3),
        ),
        tally(them, contributions=2, results=1, drops={DropReason.MEMBER: 1}),
    )
