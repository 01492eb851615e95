"""What is counted: packets and bytes of whole frames, by job, reason, worker and receiver."""

from __future__ import annotations

from collections.abc import Iterator

from ina.p4 import names
from ina.protocol.spec import DropReason
from ina.tables.values import Counter, CounterRef, EntryCounter
from ina.testing.case import Case
from ina.testing.cases.actors import Team, team
from ina.testing.cases.admission import honest_round
from ina.testing.state import member_entry, receiver_entry


def cases(values: int) -> Iterator[Case]:
    """One traffic of everything, and every counter of it."""
    them = team(values, 2)
    ones = them.ones()
    whole = len(them.frame(0, 0, ones).build())
    bare = whole - 4 * values
    job = them.job.number
    counts: dict[CounterRef, tuple[int, int]] = {
        Counter(names.JOB_CONTRIBUTIONS, job): (4, 3 * whole + bare),
        Counter(names.JOB_RESULTS, job): (2, 2 * whole),
        Counter(names.JOB_REPLAYS, job): (3, 2 * whole + bare),
        Counter(names.JOB_DUPLICATES, job): (1, bare),
        Counter(names.JOB_STALE, job): (2, whole + bare),
        Counter(names.DROPS, DropReason.DUPLICATE): (1, bare),
        Counter(names.DROPS, DropReason.STALE): (2, whole + bare),
        Counter(names.DROPS, DropReason.JOB): (2, whole + bare),
        Counter(names.DROPS, DropReason.SLOT): (1, whole),
        # Every packet that the member table admits, whatever becomes of it.
        _member(them, 0): (8, 4 * whole + 4 * bare),
        _member(them, 1): (3, 3 * whole),
        _receiver(them, 0): (4, 3 * whole + bare),
        _receiver(them, 1): (3, 3 * whole),
    }
    twos = [2] * values
    yield Case(
        "counters/everything",
        "Each admitted packet is in one of four counters; bytes are those of whole frames.",
        values,
        them.state,
        (
            *honest_round(them, 0),
            them.sends(0, 0, ones).gives(them.replay(0, 0, twos)),
            them.sends(1, 0, ones).gives(them.replay(1, 0, twos)),
            them.sends(0, 0).gives(them.replay(0, 0)),
            them.sends(0, 8),
            them.sends(0, 8),
            them.sends(0, 0),
            them.sends(0, 0, ones),
            them.sends(0, 8, ones, slot=8),
            them.sends(0, 8, ones, job=9),
            them.sends(0, 8, epoch=1),
            them.sends(1, 8, ones).gives(*them.results(8, ones)),
        ),
        counts,
    )
    big = team(values, 2, number=255)
    yield Case(
        "counters/last-index",
        "Counters are by the index that the controller gave, up to the last one.",
        values,
        big.state,
        honest_round(big),
        {
            Counter(names.JOB_CONTRIBUTIONS, 255): (2, 2 * whole),
            Counter(names.JOB_RESULTS, 255): (1, whole),
        },
    )


def _member(them: Team, worker: int) -> CounterRef:
    return EntryCounter(names.MEMBERS, member_entry(them.job, worker).match)


def _receiver(them: Team, worker: int) -> CounterRef:
    return EntryCounter(names.RECEIVERS, receiver_entry(them.job, worker).match)
