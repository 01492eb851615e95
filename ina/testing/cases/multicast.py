"""The result reaches every worker: 1 to 32 of them, each behind its port or many behind one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.p4 import names
from ina.protocol.spec import MAX_WORKERS, Flag
from ina.tables.values import DefaultAction
from ina.testing.case import Case
from ina.testing.cases.actors import tally, team
from ina.testing.cases.admission import honest_round
from ina.testing.device import Ability
from ina.testing.frames import CE


def cases(values: int) -> Iterator[Case]:
    """Jobs of every size, and queues that grow with the copies."""
    for size in range(1, MAX_WORKERS + 1):
        them = team(values, size)
        yield Case(
            f"multicast/{size}-ports",
            f"{size} workers, each behind a port of its own.",
            values,
            them.state,
            honest_round(them, 6),
            tally(them, contributions=size, results=1),
        )
    for size in (2, 8, 32):
        them = team(values, size, ports=[4] * size)
        yield Case(
            f"multicast/{size}-behind-one-port",
            f"{size} workers behind one port: as many copies, each to its own address.",
            values,
            them.state,
            (*honest_round(them, 6), *honest_round(them, 7)),
            tally(them, contributions=2 * size, results=2),
        )
    mixed = team(values, 6, ports=(2, 1, 2, 3, 1, 2))
    yield Case(
        "multicast/mixed",
        "Several workers behind some of the ports; a replay goes to its worker alone.",
        values,
        mixed.state,
        (
            *honest_round(mixed, 2),
            *(
                mixed.sends(rank, 2, mixed.ones()).gives(mixed.replay(rank, 2, [6] * values))
                for rank in mixed.ranks
            ),
        ),
        tally(mixed, contributions=6, results=1, replays=6),
    )
    yield marked(values)


def marked(values: int) -> Case:
    """Copies that wait behind others of their port are marked above the threshold."""
    them = team(values, 4, ports=[4, 4, 4, 1])
    threshold = DefaultAction(names.ECN_THRESHOLD, names.MARK_ABOVE, (("packets", 1),))
    sums = [4] * values
    waits = them.result(2, 0, sums, flags=Flag.ECN, tos=2 | CE)
    return Case(
        "multicast/marked-by-queue",
        "Behind 0, 1 and 2 packets with a threshold of 1: the third copy carries the mark.",
        values,
        (*them.state, threshold),
        (
            *(them.sends(rank, 0, them.ones()) for rank in range(3)),
            replace(
                them.sends(3, 0, them.ones()),
                out=(
                    them.result(0, 0, sums),
                    them.result(1, 0, sums),
                    waits,
                    them.result(3, 0, sums),
                ),
            ),
        ),
        tally(them, contributions=4, results=1, ecn_marks=1),
        frozenset({Ability.STEADY_QUEUES}),
    )
