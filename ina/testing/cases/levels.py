"""Trees: a switch with a parent, a root whose children are switches, and switches' addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ina.p4 import names
from ina.protocol.codec import Header, encode
from ina.protocol.spec import (
    ALL_WORKERS,
    MAX_WORKERS,
    UDP_PORT,
    DropReason,
    Flag,
    Kind,
    path_of,
)
from ina.protocol.switch_model import EPOCH_BITS, Attachment, Parent
from ina.tables.values import EntryCounter
from ina.testing.case import Arrival, Case, ItemChange
from ina.testing.cases.actors import STRANGER_PORT, Team, tally, team, total
from ina.testing.frames import RESULT_TTL, SWITCH_IPV4, SWITCH_MAC, Frame, PortFrame
from ina.testing.state import forward, own_address, parent_entry, receiver_mac, worker_mac

PARENT_AT = Attachment(30, 0x0A00_FE01, UDP_PORT)
ELSEWHERE = 0x0A00_FE02
"""The address of another switch."""


@dataclass(frozen=True)
class Inner(Team):
    """A team whose switch has a parent."""

    @property
    def parent(self) -> Parent:
        """The switch above."""
        assert self.job.parent is not None
        return self.job.parent

    def path(self, child: int) -> int:
        """Of a worker that is this child."""
        return self.parent.ways[child]

    def up(
        self, seq: int, values: Sequence[int] | None = None, tos: int = 2, **fields: Any
    ) -> PortFrame:
        """The sum as it must leave for the parent; ``fields``: what is gathered or echoed."""
        numbers = [] if values is None else list(values)
        own = self.parent.worker
        header = self.header(own, seq, len(numbers), level=self.parent.level, **fields)
        frame = Frame(
            encode(header, numbers),
            src_ipv4=SWITCH_IPV4,
            src_udp=UDP_PORT,
            dst_mac=receiver_mac(self.parent.at),
            src_mac=SWITCH_MAC,
            dst_ipv4=self.parent.at.ipv4,
            dst_udp=self.parent.at.udp_port,
            ttl=RESULT_TTL,
            udp_checksum=0,
            tos=tos,
        )
        return self.parent.at.port, frame.build()

    def told(self, seq: int, count: int, **fields: Any) -> Header:
        """The header of a result of the parent's."""
        whole = {"kind": Kind.RESULT, "contributors": 0b111, "level": self.parent.level, **fields}
        return self.header(self.parent.worker, seq, count, **whole)

    def down(self, header: Header, values: Sequence[int] = ()) -> Arrival:
        """A result of the parent's arrives."""
        at = self.parent.at
        frame = Frame(encode(header, list(values)), at.ipv4, at.udp_port, src_mac=worker_mac(at))
        return Arrival(at.port, frame.build())

    def handed(
        self, child: int, at: Attachment, header: Header, values: Sequence[int]
    ) -> PortFrame:
        """A copy of it as it must leave for a child."""
        frame = Frame(
            encode(replace(header, worker=child), list(values)),
            src_ipv4=SWITCH_IPV4,
            src_udp=UDP_PORT,
            dst_mac=receiver_mac(at),
            src_mac=SWITCH_MAC,
            dst_ipv4=at.ipv4,
            dst_udp=at.udp_port,
            ttl=RESULT_TTL,
            udp_checksum=0,
        )
        return at.port, frame.build()

    def handed_to_all(self, header: Header, values: Sequence[int] = ()) -> tuple[PortFrame, ...]:
        """Its copies to all children."""
        return tuple(self.handed(child, at, header, values) for child, at in self.job.receivers)


def inner(
    values: int, size: int = 3, *, way: tuple[int, ...] = (5,), level: int = 1, **options: Any
) -> Inner:
    """A team below a parent, as its child ``way[-1]``."""
    job = team(values, size, **options).job
    parent = Parent.above(PARENT_AT, way, level, size)
    return Inner(replace(job, parent=parent), values)


def going_up(values: int) -> Iterator[Case]:
    """A complete sum is one contribution to the parent."""
    them = inner(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    said = {"path": them.path(2), "copy": 3, "exponent": 140, "shape": 9, "value_type": 1}
    yield Case(
        "levels/sum-goes-up",
        "The contribution that completes a sum leaves for the parent, as this switch's own.",
        values,
        them.state,
        (
            them.sends(0, 4, parts[0], next_exponent=9, digest=1, check=2**31, path=them.path(0)),
            them.sends(2, 4, parts[2], next_exponent=200, digest=2, check=5, flags=Flag.OVERFLOW),
            them.sends(1, 4, parts[1], next_exponent=7, digest=4, check=2**31, **said).gives(
                them.up(
                    4,
                    total(*parts),
                    next_exponent=200,
                    digest=7,
                    check=5,
                    flags=Flag.OVERFLOW,
                    **said,
                )
            ),
        ),
        tally(them, contributions=3, results=1),
    )
    alone = inner(values, 1, way=(31,))
    yield Case(
        "levels/one-child",
        "A sum of one child goes up at once.",
        values,
        alone.state,
        (alone.sends(0, 0, alone.ones()).gives(alone.up(0, alone.ones())),),
        tally(alone, contributions=1, results=1),
    )
    yield Case(
        "levels/without-values",
        "A round about exponents alone goes up without values.",
        values,
        alone.state,
        (alone.sends(0, 0, next_exponent=77).gives(alone.up(0, next_exponent=77)),),
        tally(alone, contributions=1, results=1),
    )
    yield from many_going_up(values)


def many_going_up(values: int) -> Iterator[Case]:
    """The same of as many children as there may be, and flags that end."""
    them = inner(values)
    wide = inner(values, MAX_WORKERS, ports=[rank % 5 + 1 for rank in range(MAX_WORKERS)])
    ones = wide.ones()
    yield Case(
        "levels/32-children",
        "All 32 bits of a node's bitmap are one at its parent.",
        values,
        wide.state,
        (
            *(wide.sends(rank, 1, ones) for rank in wide.ranks[:-1]),
            wide.sends(31, 1, ones).gives(wide.up(1, [32] * values)),
        ),
        tally(wide, contributions=32, results=1),
    )
    ones = them.ones()
    yield Case(
        "levels/flags-of-one-packet-end",
        "What a worker says of its packet alone does not go up.",
        values,
        them.state,
        (
            them.sends(0, 0, ones, flags=Flag.RESEND | Flag.NON_FINITE),
            them.sends(1, 0, ones, flags=Flag.COLLISION | Flag.PARTIAL),
            them.sends(2, 0, ones, flags=Flag.RESEND | Flag.REPLAY).gives(
                them.up(0, [3] * values, flags=Flag.NON_FINITE)
            ),
        ),
        tally(them, contributions=3, results=1),
    )


def going_up_again(values: int) -> Iterator[Case]:
    """A repeated contribution to a complete sum sends it up again: nothing else mends a loss."""
    them = inner(values)
    ones, threes = them.ones(), [3] * values
    honest = (
        them.sends(0, 2, ones, digest=1, path=them.path(0)),
        them.sends(1, 2, ones, digest=1, path=them.path(1)),
        them.sends(2, 2, ones, digest=1, path=them.path(2)).gives(
            them.up(2, threes, digest=3, path=them.path(2))
        ),
    )
    again = [
        them.sends(
            rank, 2, [99] * values, digest=50, path=them.path(rank), copy=1, flags=Flag.RESEND
        ).gives(them.up(2, threes, digest=3, path=them.path(rank), copy=1))
        for rank in (1, 1, 0)
    ]
    yield Case(
        "levels/repeat-goes-up-again",
        "With the same sum, and the path of the worker that asks.",
        values,
        them.state,
        (*honest, *again),
        tally(them, contributions=3, results=1, replays=3),
    )
    yield Case(
        "levels/repeat-of-an-open-sum",
        "While a child is missing nothing goes up: the missing one will come, or ask.",
        values,
        them.state,
        (honest[0], honest[0], honest[1], honest[0]),
        tally(them, contributions=2, duplicates=2),
    )
    newer = [them.sends(rank, 10, ones) for rank in them.ranks[:-1]]
    yield Case(
        "levels/stale",
        "What is older than the slot's owner goes nowhere.",
        values,
        them.state,
        (*honest, *newer, replace(honest[2], out=())),
        tally(them, contributions=5, results=1, stale=1),
    )


def coming_down(values: int) -> Iterator[Case]:
    """A result of the parent's goes to the children as it is, and leaves nothing behind."""
    them = inner(values)
    sums = them.numbers(3)
    whole = them.told(
        6,
        values,
        flags=Flag.ECN | Flag.OVERFLOW,
        exponent=130,
        next_exponent=131,
        digest=0x1234,
        check=0x89AB_CDEF,
        path=path_of((1, 7)),
        copy=2,
        shape=5,
        value_type=2,
    )
    yield Case(
        "levels/result-to-all",
        "Each child gets a copy of the parent's result, with its own number in it.",
        values,
        them.state,
        (them.down(whole, sums).gives(*them.handed_to_all(whole, sums)),),
        tally(them, passed_down=1),
    )
    empty = them.told(7, 0, next_exponent=3)
    yield Case(
        "levels/result-without-values",
        "So does one about exponents alone.",
        values,
        them.state,
        (them.down(empty).gives(*them.handed_to_all(empty)),),
        tally(them, passed_down=1),
    )
    yield from shared_coming_down(values)


def shared_coming_down(values: int) -> Iterator[Case]:
    """Results to several children at once, beside sums that are under way."""
    them = inner(values)
    sums = them.numbers(3)
    whole = them.told(
        6,
        values,
        flags=Flag.ECN | Flag.OVERFLOW,
        exponent=130,
        next_exponent=131,
        digest=0x1234,
        check=0x89AB_CDEF,
        path=path_of((1, 7)),
        copy=2,
        shape=5,
        value_type=2,
    )
    shared = inner(values, 4, ports=(1, 1, 2, 2), listening=(0, 1, 3))
    told = shared.told(1, values)
    yield Case(
        "levels/result-shared",
        "Workers that listen behind one port share a copy of it.",
        values,
        shared.state,
        (shared.down(told, sums).gives(*shared.handed_to_all(told, sums)),),
        {
            **tally(shared, passed_down=1),
            **{
                EntryCounter(names.RECEIVERS, (("job", 1), ("worker", worker))): copies
                for worker, copies in ((2, 1), (ALL_WORKERS, 2))
            },
        },
    )
    ones, threes = them.ones(), [3] * values
    yield Case(
        "levels/result-touches-no-slot",
        "The local sum stays what it was, whatever the parent's result says.",
        values,
        them.state,
        (
            them.sends(0, 6, ones),
            them.sends(1, 6, ones),
            them.down(whole, sums).gives(*them.handed_to_all(whole, sums)),
            them.sends(2, 6, ones).gives(them.up(6, threes)),
            them.down(whole, sums).gives(*them.handed_to_all(whole, sums)),
            them.sends(2, 6, ones).gives(them.up(6, threes)),
        ),
        tally(them, contributions=3, results=1, replays=1, passed_down=2),
    )
    yield from _replays(values)


def _replays(values: int) -> Iterator[Case]:
    for way in ((5,), (0,), (31, 3), (2, 0, 31)):
        them = inner(values, 4, way=way)
        sums = them.numbers(len(way))
        asked = []
        for child in (2, 0, 3):
            # What follows below the child is the child's affair.
            below = (*way, child, 9)[: 4 if len(way) > 2 else 9]
            told = them.told(3, values, flags=Flag.REPLAY, path=path_of(below), copy=1)
            copy = them.handed(child, them.job.workers[child], told, sums)
            asked.append(them.down(told, sums).gives(copy))
        yield Case(
            f"levels/replay-to-one-{'-'.join(map(str, way))}",
            "A replay goes to the child that its path leads to, and to no other.",
            values,
            them.state,
            tuple(asked),
            tally(them, passed_down=3),
        )
    them = inner(values)
    nowhere = [
        them.told(3, values, flags=Flag.REPLAY, path=path_of((5, child))) for child in (3, 31)
    ]
    yield Case(
        "levels/replay-to-nobody",
        "A replay whose path leads to none of the children is counted and dropped.",
        values,
        them.state,
        tuple(them.down(told, them.ones()) for told in nowhere),
        tally(them, passed_down=2, drops={DropReason.MEMBER: 2}),
    )


def believing(values: int) -> Iterator[Case]:
    """Results count from the parent alone, contributions from children alone."""
    them = inner(values)
    told, ones = them.told(0, values), them.ones()
    right = them.down(told, ones)
    at = PARENT_AT
    frame = Frame(encode(told, ones), at.ipv4, at.udp_port, src_mac=worker_mac(at))
    other_epoch = replace(told, epoch=(told.epoch + 1) % (1 << EPOCH_BITS))
    wrong: dict[str, tuple[Arrival, DropReason]] = {
        "another-port": (Arrival(STRANGER_PORT, right.frame), DropReason.MEMBER),
        "another-address": (
            Arrival(at.port, replace(frame, src_ipv4=ELSEWHERE).build()),
            DropReason.MEMBER,
        ),
        "another-udp-port": (
            Arrival(at.port, replace(frame, src_udp=UDP_PORT + 1).build()),
            DropReason.MEMBER,
        ),
        "another-number": (them.down(replace(told, worker=6), ones), DropReason.MEMBER),
        "another-epoch": (them.down(other_epoch, ones), DropReason.JOB),
        "another-job": (them.down(replace(told, job=9), ones), DropReason.JOB),
        "a-slot-beyond": (them.down(replace(told, slot=them.job.slots), ones), DropReason.SLOT),
        "a-child": (them.sends(0, 0, ones, kind=Kind.RESULT), DropReason.MEMBER),
        "a-contribution": (
            them.down(replace(told, kind=Kind.CONTRIBUTION), ones),
            DropReason.MEMBER,
        ),
    }
    for name, (arrival, reason) in wrong.items():
        yield Case(
            f"levels/not-the-parent-{name}",
            "A result is handed down only as the controller said that the parent sends it.",
            values,
            them.state,
            (arrival, right.gives(*them.handed_to_all(told, ones))),
            tally(them, passed_down=1, drops={reason: 1}),
        )
    yield from parents(values)


def parents(values: int) -> Iterator[Case]:
    """Jobs without a parent, and as they become roots."""
    them = inner(values)
    told, ones = them.told(0, values), them.ones()
    right = them.down(told, ones)
    orphan = tuple(item for item in them.state if item != parent_entry(them.job, them.parent))
    yield Case(
        "levels/no-parent-yet",
        "Entries may come in any order: until the parent's is there, its results are dropped.",
        values,
        orphan,
        (
            right,
            ItemChange(insert=(parent_entry(them.job, them.parent),)),
            right.gives(*them.handed_to_all(told, ones)),
        ),
        tally(them, passed_down=1, drops={DropReason.MEMBER: 1}),
    )
    rooted = Team(replace(them.job, parent=None, epoch=them.job.epoch + 1), values)
    yield Case(
        "levels/becomes-the-root",
        "A job whose switch has no parent any more, in its next epoch, gets its results from it.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, ones) for rank in them.ranks[:-1]),
            them.sends(2, 0, ones).gives(them.up(0, [3] * values)),
            ItemChange(them.state[::-1], rooted.state),
            right,
            *(rooted.sends(rank, 0, ones) for rank in them.ranks[:-1]),
            rooted.sends(2, 0, ones).gives(*rooted.results(0, [3] * values)),
        ),
        tally(them, contributions=6, results=2, drops={DropReason.JOB: 1}),
    )


def root(values: int) -> Iterator[Case]:
    """A root cannot tell whether its children are workers."""
    them = team(values, 3)
    racks = tuple(replace(at, udp_port=UDP_PORT) for at in them.job.workers)
    them = replace(them, job=replace(them.job, workers=racks))
    sums = [them.numbers(rank) for rank in them.ranks]
    said = {"level": 1, "exponent": 120}
    paths = [path_of((rack, 4)) for rack in them.ranks]
    echo = {**said, "path": paths[1], "copy": 2}
    asks = {**said, "path": path_of((2, 30)), "copy": 1}
    yield Case(
        "levels/root-of-switches",
        "Sums of switches are summed; a replay goes back the way that the question came.",
        values,
        them.state,
        (
            them.sends(0, 0, sums[0], digest=3, **said, path=paths[0]),
            them.sends(2, 0, sums[2], digest=4, **said, path=paths[2]),
            them.sends(0, 0, sums[0], digest=3, **said, path=paths[0]),
            them.sends(1, 0, sums[1], digest=5, **echo).gives(
                *them.results(0, total(*sums), digest=12, **echo)
            ),
            them.sends(2, 0, sums[2], digest=4, **asks).gives(
                them.replay(2, 0, total(*sums), digest=12, **asks)
            ),
        ),
        tally(them, contributions=3, results=1, duplicates=1, replays=1),
    )


def addressed(values: int) -> Iterator[Case]:
    """A switch sums what is for an address of its own, and nothing else."""
    them = team(values, 1)
    mac, port = 0x02AA_0000_0001, 7
    frame = them.frame(0, 0, them.ones())
    away = replace(frame, dst_ipv4=ELSEWHERE, dst_mac=mac).build()
    at = them.job.workers[0].port
    yield Case(
        "address/of-another-switch",
        "A contribution for another switch is ordinary traffic, and stays as it is.",
        values,
        (*them.state, forward(mac, port)),
        (Arrival(at, away).gives((port, away)),),
    )
    back = Frame(
        encode(them.header(0, 0, values, kind=Kind.RESULT), them.ones()),
        src_ipv4=ELSEWHERE,
        src_udp=UDP_PORT,
        dst_mac=worker_mac(them.job.workers[0]),
        dst_ipv4=them.job.workers[0].ipv4,
        dst_udp=them.job.workers[0].udp_port,
    ).build()
    yield Case(
        "address/another-switchs-result",
        "So is its result.",
        values,
        (*them.state, forward(worker_mac(them.job.workers[0]), at)),
        (Arrival(port, back).gives((at, back)),),
    )
    yield Case(
        "address/none-yet",
        "Until the controller has said which addresses are its own, a switch sums nothing.",
        values,
        (own_address(ELSEWHERE), *them.state),
        (
            Arrival(at, frame.build()),
            ItemChange(delete=(own_address(ELSEWHERE),), insert=(own_address(),)),
            Arrival(at, away),
            Arrival(at, frame.build()).gives(*them.results(0, them.ones())),
        ),
        tally(them, contributions=1, results=1),
    )


def cases(values: int) -> Iterator[Case]:
    """All of this topic."""
    for group in (going_up, going_up_again, coming_down, believing, root, addressed):
        yield from group(values)
