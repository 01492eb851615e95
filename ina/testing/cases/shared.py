"""One copy of the result for all workers behind a port that listen to a multicast address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.p4 import names
from ina.protocol.spec import ALL_WORKERS, DropReason, Flag
from ina.tables.values import CounterRef, DefaultAction, EntryCounter
from ina.testing.case import Case, ItemChange
from ina.testing.cases.actors import Team, tally, team
from ina.testing.cases.admission import honest_round
from ina.testing.cases.merging import with_tos
from ina.testing.device import Ability
from ina.testing.frames import CE
from ina.testing.state import job_copies, receiver_entry


def cases(values: int) -> Iterator[Case]:
    """Who gets which copy; what is in it; groups that change; what goes wrong."""
    yield from sizes(values)
    yield mixed(values)
    yield two_ports(values)
    yield two_jobs(values)
    yield replays(values)
    yield from contents(values)
    yield marked(values)
    yield from changes(values)
    yield unaddressed(values)
    yield no_worker(values)


def sizes(values: int) -> Iterator[Case]:
    """As many listeners as a job may have."""
    for size in (2, 3, 32):
        them = team(values, size, ports=[4] * size, listening=range(size))
        yield Case(
            f"shared/{size}-behind-one-port",
            f"{size} workers behind one port listen: one copy a round, to their address.",
            values,
            them.state,
            (*honest_round(them, 6), *honest_round(them, 7)),
            {
                **tally(them, contributions=2 * size, results=2),
                **_copies(them, {ALL_WORKERS: 2}),
            },
        )


def mixed(values: int) -> Case:
    """Both kinds of copies in one round."""
    them = team(values, 4, ports=(2, 2, 1, 2), listening=(0, 1))
    fours = [4] * values
    shared = them.copy(ALL_WORKERS, them.shared_at(2), 3, fours)
    return Case(
        "shared/mixed",
        "Two share behind port 2; one that does not listen, and one behind port 1, get their own.",
        values,
        them.state,
        (
            *(them.sends(rank, 3, them.ones()) for rank in (3, 0, 2)),
            them.sends(1, 3, them.ones()).gives(
                them.result(2, 3, fours), them.result(3, 3, fours), shared
            ),
        ),
        {
            **tally(them, contributions=4, results=1),
            **_copies(them, {ALL_WORKERS: 1, 2: 1, 3: 1}),
        },
    )


def two_ports(values: int) -> Case:
    """Sharing behind several ports of the switch."""
    them = team(values, 4, ports=(1, 3, 1, 3), listening=range(4))
    return Case(
        "shared/two-ports",
        "Listeners behind two ports: one copy to each port, the same in both.",
        values,
        them.state,
        honest_round(them, 1),
        {**tally(them, contributions=4, results=1), **_copies(them, {ALL_WORKERS: 2})},
    )


def two_jobs(values: int) -> Case:
    """Two jobs behind one port, each with an address of its own."""
    one = team(values, 2, ports=(4, 4), listening=(0, 1))
    two = team(values, 3, number=2, first_slot=64, ports=(4, 4, 4), listening=(0, 1, 2))
    return Case(
        "shared/two-jobs",
        "Behind one port, each job's result goes to the address of that job.",
        values,
        (*one.state, *two.state),
        (*honest_round(one, 6), *honest_round(two, 6)),
        {
            **tally(one, contributions=2, results=1),
            **tally(two, contributions=3, results=1),
            **_copies(one, {ALL_WORKERS: 1}),
            **_copies(two, {ALL_WORKERS: 1}),
        },
    )


def replays(values: int) -> Case:
    """A copy that one listener has lost is not sent to the others again."""
    them = team(values, 3, ports=[4] * 3, listening=(0, 1))
    threes = [3] * values
    return Case(
        "shared/replay",
        "A worker that asks again gets the sum alone: its own number, address and UDP port.",
        values,
        them.state,
        (
            *honest_round(them, 2),
            *(
                them.sends(rank, 2, them.ones(), flags=Flag.RESEND).gives(
                    them.replay(rank, 2, threes)
                )
                for rank in them.ranks
            ),
        ),
        {
            **tally(them, contributions=3, results=1, replays=3),
            **_copies(them, {ALL_WORKERS: 1, 0: 1, 1: 1, 2: 2}),
        },
    )


def contents(values: int) -> Iterator[Case]:
    """A shared copy says what a worker's own would."""
    them = team(values, 3, ports=[4] * 3, listening=(0, 1))
    ones, threes = them.ones(), [3] * values
    gathered = Flag.OVERFLOW | Flag.NON_FINITE
    yield Case(
        "shared/gathered",
        "Flags and exponents of all contributions; RESEND ends at the switch.",
        values,
        them.state,
        (
            them.sends(0, 0, ones, flags=Flag.OVERFLOW | Flag.RESEND, next_exponent=7),
            them.sends(1, 0, ones, flags=Flag.NON_FINITE, next_exponent=200),
            them.sends(2, 0, ones, exponent=130).gives(
                *them.results(0, threes, flags=gathered, next_exponent=200, exponent=130)
            ),
        ),
        tally(them, contributions=3, results=1),
    )
    yield Case(
        "shared/congestion",
        "CE on a contribution becomes the flag ECN; the copy has the completing packet's DSCP.",
        values,
        them.state,
        (
            with_tos(them, 0, 0, CE),
            with_tos(them, 1, 0, 2),
            with_tos(them, 2, 0, 0xB8).gives(*them.results(0, threes, tos=0xB8, flags=Flag.ECN)),
        ),
        tally(them, contributions=3, results=1),
    )
    yield Case(
        "shared/round-without-values",
        "Exponents that are agreed without values are shared as well.",
        values,
        them.state,
        (
            them.sends(0, 2, next_exponent=9),
            them.sends(1, 2, next_exponent=11),
            them.sends(2, 2, next_exponent=4).gives(*them.results(2, next_exponent=11)),
        ),
        {**tally(them, contributions=3, results=1), **_copies(them, {ALL_WORKERS: 1, 2: 1})},
    )


def marked(values: int) -> Case:
    """A shared copy waits in its port's queue as any other."""
    them = team(values, 4, ports=[4] * 4, listening=(2, 3))
    threshold = DefaultAction(names.ECN_THRESHOLD, names.MARK_ABOVE, (("packets", 1),))
    sums = [4] * values
    waits = them.copy(ALL_WORKERS, them.shared_at(4), 0, sums, flags=Flag.ECN, tos=2 | CE)
    return Case(
        "shared/marked-by-queue",
        "Behind two copies, with a threshold of 1: the shared copy carries the mark.",
        values,
        (*them.state, threshold),
        (
            *(them.sends(rank, 0, them.ones()) for rank in range(3)),
            replace(
                them.sends(3, 0, them.ones()),
                out=(them.result(0, 0, sums), them.result(1, 0, sums), waits),
            ),
        ),
        tally(them, contributions=4, results=1, ecn_marks=1),
        frozenset({Ability.STEADY_QUEUES}),
    )


def changes(values: int) -> Iterator[Case]:
    """The control plane gives the job's group other copies while the job runs."""
    shared = team(values, 3, ports=[4] * 3, listening=range(3))
    alone = team(values, 3, ports=[4] * 3)
    to_alone = ItemChange(modify=(job_copies(alone.job),))
    to_shared = ItemChange(modify=(job_copies(shared.job),))
    yield Case(
        "shared/group-modified",
        "From one copy for all to one for each, and back: from the next round on.",
        values,
        shared.state,
        (
            *honest_round(shared, 0),
            to_alone,
            *honest_round(alone, 1),
            alone.sends(2, 0, alone.ones()).gives(alone.replay(2, 0, [3] * values)),
            to_shared,
            *honest_round(shared, 2),
        ),
        {
            **tally(shared, contributions=9, results=3, replays=1),
            **_copies(shared, {ALL_WORKERS: 2, 0: 1, 1: 1, 2: 2}),
        },
    )
    *first, last = honest_round(alone, 5)
    yield Case(
        "shared/group-modified-in-a-round",
        "The copies are those of the moment when the round completes; its sum is not touched.",
        values,
        shared.state,
        (*first, to_alone, last),
        {
            **tally(shared, contributions=3, results=1),
            **_copies(shared, {0: 1, 1: 1, 2: 1}),
        },
    )


def unaddressed(values: int) -> Case:
    """The group has the copy, and nothing says where it goes."""
    them = team(values, 2, ports=(4, 4), listening=(0, 1))
    twos = [2] * values
    return Case(
        "shared/unaddressed",
        "Without a receiver the shared copy is dropped and counted; who asks again gets the sum.",
        values,
        them.state,
        (
            ItemChange(delete=(receiver_entry(them.job, ALL_WORKERS),)),
            *(them.sends(rank, 0, them.ones()) for rank in them.ranks),
            *(
                them.sends(rank, 0, them.ones()).gives(them.replay(rank, 0, twos))
                for rank in them.ranks
            ),
        ),
        tally(them, contributions=2, results=1, replays=2, unaddressed=1),
    )


def no_worker(values: int) -> Case:
    """255 is a receiver only."""
    them = team(values, 2, ports=(4, 4), listening=(0, 1))
    return Case(
        "shared/all-send-nothing",
        "A contribution in the name of all is nobody's: dropped and counted.",
        values,
        them.state,
        (them.sends(0, 0, them.numbers(1), worker=ALL_WORKERS), *honest_round(them)),
        tally(them, contributions=2, results=1, drops={DropReason.MEMBER: 1}),
    )


def _copies(them: Team, packets: dict[int, int]) -> dict[CounterRef, int]:
    """What the receivers' entries count, those of the job's workers and the shared one."""
    return {
        EntryCounter(names.RECEIVERS, receiver_entry(them.job, worker).match): packets.get(
            worker, 0
        )
        for worker in (*them.ranks, ALL_WORKERS)
    }
