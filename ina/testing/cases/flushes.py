"""Mode shared: a resend takes its round's sum along, and closes the round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ina.protocol.spec import Flag
from ina.testing.case import Case
from ina.testing.cases.actors import tally, total
from ina.testing.cases.claims import MODE, sharer
from ina.testing.traffic import NEVER_OLD

RESENT: dict[str, Any] = {"flags": Flag.RESEND, "copy": 1}
"""What a worker's second copy says."""


def cases(values: int) -> Iterator[Case]:
    """Sums that leave early, and resends that find none."""
    for case in (*partial(values), *whole(values), *nothing(values)):
        yield replace(case, mode=MODE)


def partial(values: int) -> Iterator[Case]:
    """Somebody is missing."""
    them = sharer(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    after = (
        them.sends(1, 0, parts[1], **RESENT).gives(them.alone(1, 0, parts[1], **RESENT)),
        them.sends(2, 0, parts[2]).gives(them.alone(2, 0, parts[2])),
        them.sends(0, 4, parts[0]),
        them.sends(1, 4, parts[1]),
        them.sends(2, 4, parts[2]).gives(them.up(4, total(*parts), contributors=0b111)),
    )
    yield Case(
        "flush/of-one-who-is-in",
        "The sum goes up as it is; what comes of the round later goes on alone; the next is new.",
        values,
        them.state,
        (
            them.sends(0, 0, parts[0], next_exponent=3, digest=1, check=10, flags=Flag.OVERFLOW),
            them.sends(1, 0, parts[1], next_exponent=8, digest=2, check=20),
            them.sends(0, 0, parts[0], next_exponent=3, digest=1, check=10, copy=2).gives(
                them.up(
                    0,
                    total(*parts[:2]),
                    contributors=0b011,
                    next_exponent=8,
                    digest=3,
                    check=30,
                    flags=Flag.OVERFLOW,
                    copy=2,
                )
            ),
            *after,
        ),
        tally(them, contributions=5, results=1, replays=1, flushes=1, missed=1, late=1),
    )
    yield Case(
        "flush/of-one-who-is-not-in",
        "The sum goes up with the resent part.",
        values,
        them.state,
        (
            them.sends(0, 0, parts[0], digest=1),
            them.sends(1, 0, parts[1], digest=4, **RESENT).gives(
                them.up(0, total(*parts[:2]), contributors=0b011, digest=5, **RESENT)
            ),
            *after,
        ),
        tally(them, contributions=5, results=1, flushes=1, missed=1, late=1),
    )
    yield from partial_without_values(values)


def partial_without_values(values: int) -> Iterator[Case]:
    """A packet without values puts out what is there, too."""
    them = sharer(values)
    yield Case(
        "flush/without-values",
        "A round about exponents leaves like any other.",
        values,
        them.state,
        (
            them.sends(0, 0, next_exponent=3),
            them.sends(1, 0, next_exponent=9, **RESENT).gives(
                them.up(0, contributors=0b011, next_exponent=9, **RESENT)
            ),
        ),
        tally(them, contributions=2, flushes=1),
    )


def whole(values: int) -> Iterator[Case]:
    """Nobody is missing."""
    them = sharer(values, 2)
    ones, twos = them.ones(), [2] * values
    yield Case(
        "flush/completes",
        "A resend that completes the sum takes it up, and closes the round, too.",
        values,
        them.state,
        (
            them.sends(0, 0, ones),
            them.sends(1, 0, ones, **RESENT).gives(them.up(0, twos, contributors=0b11, **RESENT)),
            them.sends(0, 0, ones).gives(them.alone(0, 0, ones)),
        ),
        tally(them, contributions=2, results=1, late=1),
    )
    yield Case(
        "flush/complete-sum-again",
        "A resend that finds the sum complete takes it up once more; the one after goes alone.",
        values,
        them.state,
        (
            them.sends(0, 0, ones),
            them.sends(1, 0, ones).gives(them.up(0, twos, contributors=0b11)),
            them.sends(0, 0, ones, copy=1).gives(them.up(0, twos, contributors=0b11, copy=1)),
            them.sends(0, 0, ones, copy=2).gives(them.alone(0, 0, ones, copy=2)),
            them.sends(1, 0, ones, **RESENT).gives(them.alone(1, 0, ones, **RESENT)),
        ),
        tally(them, contributions=2, results=1, replays=1, missed=2),
    )


def nothing(values: int) -> Iterator[Case]:
    """There is no sum of its round."""
    them = sharer(values, 2)
    patient = sharer(values, 2, number=2, epoch=0x0004_0001, age_us=NEVER_OLD)
    ones, twos = them.ones(), [2] * values
    yield Case(
        "flush/claims-nothing",
        "A resend goes on alone where the slot is nobody's, another's, or in another round.",
        values,
        (*them.state, *patient.state),
        (
            them.sends(0, 0, ones, **RESENT).gives(them.alone(0, 0, ones, **RESENT)),
            patient.sends(0, 0, ones, **RESENT).gives(patient.alone(0, 0, ones, **RESENT)),
            them.sends(0, 4, ones),
            patient.sends(1, 4, ones, **RESENT).gives(patient.alone(1, 4, ones, **RESENT)),
            them.sends(1, 0, ones, **RESENT).gives(them.alone(1, 0, ones, **RESENT)),
            them.sends(1, 8, ones, **RESENT).gives(them.alone(1, 8, ones, **RESENT)),
            them.sends(1, 4, ones).gives(them.up(4, twos, contributors=0b11)),
        ),
        {
            **tally(them, contributions=2, results=1, missed=3),
            **tally(patient, missed=2),
        },
    )
