"""Mode shared: who claims a slot, who finds it taken, when it is free again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ina.protocol.shared_model import Claims
from ina.protocol.spec import PATH_BITS, Flag
from ina.testing.case import Case, ItemChange
from ina.testing.cases.actors import tally, total
from ina.testing.cases.levels import Inner, inner
from ina.testing.frames import PortFrame
from ina.testing.state import job_entry, owner_entry
from ina.testing.traffic import ALWAYS_OLD, NEVER_OLD

MODE = "shared"


@dataclass(frozen=True)
class Sharer(Inner):
    """A team whose switch shares its slots with others; its parent is the aggregator."""

    def alone(
        self, worker: int, seq: int, values: list[int] | None = None, **fields: Any
    ) -> PortFrame:
        """The worker's contribution as it must go on by itself."""
        return self.up(seq, values, contributors=self.job.bits_of(worker), **fields)

    def put_out(self, seq: int, values: list[int], held: int, **fields: Any) -> PortFrame:
        """Its sum as it must go up when another job takes its slot over."""
        nobody = (1 << PATH_BITS) - 1
        return self.up(seq, values, contributors=held, path=nobody, **fields)

    def aged(self, age_us: int) -> Sharer:
        """The same team, with another patience."""
        assert self.job.claims is not None
        return replace(self, job=replace(self.job, claims=replace(self.job.claims, age_us=age_us)))

    def grows_patient(self) -> ItemChange:
        """From now on it takes no slot that is in use."""
        patient = self.aged(NEVER_OLD)
        return ItemChange(delete=(job_entry(self.job),), insert=(job_entry(patient.job),))


def sharer(
    values: int, size: int = 3, *, age_us: int = ALWAYS_OLD, claimable: int = 4, **options: Any
) -> Sharer:
    """A team of four lanes that are one slot each, the first at the job's first slot."""
    job = inner(values, size, **options).job
    claims = Claims(lane_mask=job.slots // 2 - 1, claimable=claimable, age_us=age_us)
    return Sharer(replace(job, claims=claims), values)


def cases(values: int) -> Iterator[Case]:
    """Claiming, colliding, ageing, releasing."""
    for case in (
        *sums(values),
        *collisions(values),
        *releases(values),
        *rounds(values),
        *lanes(values),
    ):
        yield replace(case, mode=MODE)


def sums(values: int) -> Iterator[Case]:
    """What happens where nobody is in the way."""
    them = sharer(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    yield Case(
        "claims/sum-goes-up",
        "The contribution that completes a sum goes up, and names all who are in it.",
        values,
        them.state,
        (
            them.sends(0, 4, parts[0], next_exponent=9, digest=1, check=7, path=them.path(0)),
            them.sends(2, 4, parts[2], next_exponent=99, digest=2, flags=Flag.OVERFLOW),
            them.sends(1, 4, parts[1], next_exponent=7, digest=4, path=them.path(1)).gives(
                them.up(
                    4,
                    total(*parts),
                    contributors=0b111,
                    next_exponent=99,
                    digest=7,
                    check=7,
                    flags=Flag.OVERFLOW,
                    path=them.path(1),
                )
            ),
        ),
        tally(them, contributions=3, results=1),
    )
    single = sharer(values, 1)
    yield Case(
        "claims/one-child",
        "A contribution that is alone is a sum.",
        values,
        single.state,
        tuple(
            single.sends(0, seq, single.ones()).gives(single.up(seq, single.ones(), contributors=1))
            for seq in range(12)
        ),
        tally(single, contributions=12, results=12),
    )
    ones = them.ones()
    yield Case(
        "claims/repeated",
        "A copy that the network has made is dropped, before and after the sum is complete.",
        values,
        them.state,
        (
            them.sends(0, 0, ones),
            them.sends(0, 0, parts[0]),
            them.sends(1, 0, ones),
            them.sends(2, 0, ones).gives(them.up(0, [3] * values, contributors=0b111)),
            them.sends(1, 0, ones),
        ),
        tally(them, contributions=3, results=1, duplicates=2),
    )


def collisions(values: int) -> Iterator[Case]:
    """Two jobs, one slot."""
    first = sharer(values, number=1)
    second = sharer(values, number=2, epoch=0x0004_0001, age_us=NEVER_OLD)
    ones, others = first.ones(), second.numbers(8)
    said = {"next_exponent": 5, "digest": 6, "check": 7, "path": second.path(1)}
    yield Case(
        "claims/taken",
        "What finds its slot in use goes on alone, says so, and changes no sum.",
        values,
        (*first.state, *second.state),
        (
            first.sends(0, 0, ones),
            second.sends(1, 0, others, flags=Flag.NON_FINITE, **said).gives(
                second.alone(1, 0, others, flags=Flag.NON_FINITE | Flag.COLLISION, **said)
            ),
            first.sends(1, 0, ones),
            second.sends(2, 0, ones).gives(second.alone(2, 0, ones, flags=Flag.COLLISION)),
            first.sends(2, 0, ones).gives(
                first.up(0, [3] * values, contributors=0b111, flags=Flag.WANTED)
            ),
            second.sends(0, 0, ones).gives(second.alone(0, 0, ones, flags=Flag.COLLISION)),
        ),
        {
            **tally(first, contributions=3, results=1),
            **tally(second, collisions=3),
        },
    )
    yield from taking_over(values)
    yield from odd_owners(values)


def taking_over(values: int) -> Iterator[Case]:
    """A slot that is old is taken over, and what it held goes up."""
    first = sharer(values, number=1)
    second = sharer(values, number=2, epoch=0x0004_0001, age_us=NEVER_OLD)
    ones, others = first.ones(), second.numbers(8)
    said_by_greedy = {"next_exponent": 77, "digest": 4, "check": 5}
    greedy = second.aged(ALWAYS_OLD)
    patient = first.aged(NEVER_OLD)
    gathered = {"next_exponent": 7, "digest": 3, "check": 9}
    yield Case(
        "claims/old-is-taken-over",
        "An owner of whom nothing was heard loses its slot; what was in it goes up, as its own.",
        values,
        (*first.state, *greedy.state),
        (
            first.sends(0, 4, ones, exponent=140, value_type=1, flags=Flag.OVERFLOW, **gathered),
            first.sends(2, 4, ones, exponent=140, value_type=1, path=first.path(2)),
            greedy.sends(0, 0, others, exponent=99, shape=3, path=1, **said_by_greedy).gives(
                first.put_out(
                    4,
                    [2] * values,
                    0b101,
                    exponent=140,
                    value_type=1,
                    flags=Flag.OVERFLOW | Flag.WANTED,
                    **gathered,
                )
            ),
            first.grows_patient(),
            first.sends(1, 4, ones).gives(patient.alone(1, 4, ones, flags=Flag.COLLISION)),
            greedy.sends(1, 0, others),
            greedy.sends(2, 0, ones).gives(
                greedy.up(
                    0,
                    total(others, others, ones),
                    contributors=0b111,
                    flags=Flag.WANTED,
                    **said_by_greedy,
                )
            ),
        ),
        {
            **tally(first, contributions=2, collisions=1, evictions=1),
            **tally(greedy, contributions=3, results=1),
        },
    )


def odd_owners(values: int) -> Iterator[Case]:
    """Whose slot it is tells who may take it, and what there is to put out."""
    first = sharer(values, number=1)
    second = sharer(values, number=2, epoch=0x0004_0001, age_us=NEVER_OLD)
    ones, others = first.ones(), second.numbers(8)
    greedy = second.aged(ALWAYS_OLD)
    older = sharer(values, number=2, epoch=0x0002_0001)
    theirs = total(others, others, others)
    yield Case(
        "claims/by-an-older-epoch",
        "Epochs say whose a slot is, and not who comes before whom.",
        values,
        (*first.state, *older.state),
        (
            first.sends(0, 0, ones),
            older.sends(0, 0, others).gives(first.put_out(0, ones, 0b001, flags=Flag.WANTED)),
            older.sends(1, 0, others),
            older.sends(2, 0, others).gives(older.up(0, theirs, contributors=0b111)),
        ),
        {
            **tally(first, contributions=1, evictions=1),
            **tally(older, contributions=3, results=1),
        },
    )
    single = sharer(values, 1, number=3, epoch=0x0005_0001)
    yield Case(
        "claims/nothing-to-put-out",
        "Nothing more leaves where the sum was whole, or had no values, or a whole one comes.",
        values,
        (*first.state, *greedy.state, *single.state),
        (
            *(first.sends(rank, 0, ones) for rank in (0, 1)),
            first.sends(2, 0, ones).gives(first.up(0, [3] * values, contributors=0b111)),
            greedy.sends(0, 0, others),
            single.sends(0, 0, ones).gives(single.up(0, ones, contributors=0b1)),
            first.sends(0, 4, next_exponent=9),
            greedy.sends(0, 4, others),
        ),
        {
            **tally(first, contributions=4, results=1),
            **tally(greedy, contributions=2),
            **tally(single, contributions=1, results=1),
        },
    )
    gone = ItemChange(delete=(owner_entry(first.job, first.parent),))
    yield Case(
        "claims/of-a-job-that-is-gone",
        "What nobody waits for any more stays nowhere.",
        values,
        (*first.state, *greedy.state),
        (first.sends(0, 0, ones), gone, greedy.sends(0, 0, others)),
        {**tally(first, contributions=1), **tally(greedy, contributions=1)},
    )


def releases(values: int) -> Iterator[Case]:
    """A slot is free when the result passes."""
    first = sharer(values, 2, number=1)
    second = sharer(values, 2, number=2, epoch=0x0004_0001, age_us=NEVER_OLD)
    ones, twos = first.ones(), [2] * values
    whole = first.told(0, values, contributors=0b11)
    theirs = second.told(0, values, contributors=0b11)
    claimed = (
        first.sends(0, 0, ones),
        first.grows_patient(),
        first.sends(1, 0, ones).gives(first.up(0, twos, contributors=0b11)),
    )
    yield Case(
        "claims/released",
        "The result that passes down to all frees the slot.",
        values,
        (*first.state, *second.state),
        (
            *claimed,
            first.down(whole, twos).gives(*first.handed_to_all(whole, twos)),
            second.sends(0, 0, ones),
            second.sends(1, 0, ones).gives(second.up(0, twos, contributors=0b11)),
        ),
        {
            **tally(first, contributions=2, results=1, passed_down=1),
            **tally(second, contributions=2, results=1),
        },
    )
    again = replace(whole, flags=Flag.REPLAY, path=first.path(1))
    yield Case(
        "claims/released-by-a-replay",
        "So does a result that is for one worker.",
        values,
        (*first.state, *second.state),
        (
            *claimed,
            first.down(again, twos).gives(first.handed(1, first.job.workers[1], again, twos)),
            second.sends(0, 0, ones),
            second.sends(1, 0, ones).gives(second.up(0, twos, contributors=0b11)),
        ),
        {
            **tally(first, contributions=2, results=1, passed_down=1),
            **tally(second, contributions=2, results=1),
        },
    )
    yield Case(
        "claims/not-released-by-others",
        "A result of another job frees only its own.",
        values,
        (*first.state, *second.state),
        (
            *claimed,
            second.down(theirs, twos).gives(*second.handed_to_all(theirs, twos)),
            second.sends(0, 0, ones).gives(second.alone(0, 0, ones, flags=Flag.COLLISION)),
        ),
        {
            **tally(first, contributions=2, results=1),
            **tally(second, collisions=1, passed_down=1),
        },
    )


def rounds(values: int) -> Iterator[Case]:
    """One job, one slot: what is newer, and what is late."""
    them = sharer(values, 2)
    ones, others, twos = them.ones(), them.numbers(3), [2] * values
    yield Case(
        "claims/newer-takes-over",
        "The lane's next chunk takes the slot over; what is late goes on alone.",
        values,
        them.state,
        (
            them.sends(0, 0, others),
            them.sends(0, 4, ones),
            them.sends(1, 0, others).gives(them.alone(1, 0, others)),
            them.sends(1, 4, ones).gives(them.up(4, twos, contributors=0b11)),
        ),
        tally(them, contributions=3, results=1, late=1),
    )
    last = 2**32 - 4
    yield Case(
        "claims/numbers-wrap",
        "Sequence numbers are compared as serial numbers.",
        values,
        them.state,
        (
            them.sends(0, last, others),
            them.sends(0, 0, ones),
            them.sends(1, last, others).gives(them.alone(1, last, others)),
            them.sends(1, 0, ones).gives(them.up(0, twos, contributors=0b11)),
        ),
        tally(them, contributions=3, results=1, late=1),
    )


def lanes(values: int) -> Iterator[Case]:
    """Which lane has which slot."""
    them = sharer(values, 2, claimable=2)
    ones, twos = them.ones(), [2] * values
    yield Case(
        "claims/lanes-without-slot",
        "Lanes beyond those that the job may claim slots for go on alone, and claim none.",
        values,
        them.state,
        tuple(
            step
            for seq in (0, 1, 6, 7)
            for step in (
                them.sends(0, seq, ones).gives(*([] if seq < 2 else [them.alone(0, seq, ones)])),
                them.sends(1, seq, ones).gives(
                    them.up(seq, twos, contributors=0b11) if seq < 2 else them.alone(1, seq, ones)
                ),
            )
        ),
        tally(them, contributions=4, results=2, bypassed=4),
    )
    down = them.told(6, values, contributors=0b11)
    neighbour = sharer(values, 2, number=2, epoch=0x0004_0001, first_slot=34, claimable=4)
    yield Case(
        "claims/result-of-a-lane-without-slot",
        "A result of such a lane frees no slot of whoever has the place.",
        values,
        (*them.state, *neighbour.state),
        (
            neighbour.sends(0, 0, ones),
            them.down(down, twos).gives(*them.handed_to_all(down, twos)),
            neighbour.sends(1, 0, ones).gives(neighbour.up(0, twos, contributors=0b11)),
        ),
        {
            **tally(them, passed_down=1),
            **tally(neighbour, contributions=2, results=1),
        },
    )
