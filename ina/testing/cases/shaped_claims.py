"""Mode shared, shapes other than SUM: what leaves holds the parts of all whom it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ina.protocol.spec import Flag, Shape
from ina.testing.case import Case
from ina.testing.cases.actors import tally, total
from ina.testing.cases.claims import MODE, Sharer, sharer
from ina.testing.cases.flushes import RESENT
from ina.testing.cases.shapes import owned
from ina.testing.traffic import NEVER_OLD

_WAY = (5,)
"""Of :func:`sharer`'s switch."""


def said(them: Sharer, shape: Shape, owner: int, **fields: Any) -> list[dict[str, Any]]:
    """By worker: whose its packets are, and whose chunk."""
    return [owned(shape, (*_WAY, it), (*_WAY, owner), **fields) for it in them.ranks]


def cases(values: int) -> Iterator[Case]:
    """Sums that leave whole, early, or for others."""
    for case in (*sums(values), *flushed(values), *put_out(values), *alone(values), *sets(values)):
        yield replace(case, mode=MODE)


def sums(values: int) -> Iterator[Case]:
    """Nobody is in the way."""
    them = sharer(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    for shape, owner in ((Shape.SCATTER, 2), (Shape.GATHER, 0)):
        gives = [it for it in them.ranks if (it == owner) == (shape == Shape.GATHER)]
        of = said(them, shape, owner)
        sent = [
            them.sends(it, 4, parts[it] if it in gives else None, **of[it]) for it in them.ranks
        ]
        whole = total(*(parts[it] for it in gives))
        yield Case(
            f"shaped-claims/{shape.name.lower()}",
            "A header alone claims a slot, joins, and takes the sum along that it completes.",
            values,
            them.state,
            (
                them.sends(1, 0, them.ones()),  # a round that is never whole
                *(sent[1], sent[0]),
                sent[2].gives(them.up(4, whole, contributors=0b111, **of[2])),
                *(sent[1], sent[0]),
            ),
            tally(them, contributions=4, results=1, duplicates=2),
        )
    yield from _began_without(values)


def _began_without(values: int) -> Iterator[Case]:
    """What is left of another job is no part of a round that begins without values."""
    first = sharer(values, number=1)
    second = sharer(values, 2, number=2, epoch=0x0004_0001)
    ones, part = first.ones(), second.numbers(3)
    of = said(second, Shape.GATHER, 1)
    yield Case(
        "shaped-claims/begins-at-0",
        "Where another job's whole sum was, a header alone begins a round at 0.",
        values,
        (*first.state, *second.state),
        (
            *(first.sends(it, 0, ones) for it in (0, 1)),
            first.sends(2, 0, ones).gives(first.up(0, [3] * values, contributors=0b111)),
            second.sends(0, 0, **of[0]),
            second.sends(1, 0, part, **of[1]).gives(second.up(0, part, contributors=0b11, **of[1])),
        ),
        {
            **tally(first, contributions=3, results=1),
            **tally(second, contributions=2, results=1),
        },
    )


def flushed(values: int) -> Iterator[Case]:
    """A resend takes along what is there."""
    them = sharer(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    scattered, gathered = said(them, Shape.SCATTER, 2), said(them, Shape.GATHER, 1)
    yield Case(
        "shaped-claims/flush",
        "A header alone that is sent again takes the values along that others have brought.",
        values,
        them.state,
        (
            them.sends(0, 0, parts[0], **scattered[0]),
            them.sends(1, 0, parts[1], **scattered[1]),
            them.sends(2, 0, **scattered[2], **RESENT).gives(
                them.up(0, total(*parts[:2]), contributors=0b111, **scattered[2], **RESENT)
            ),
            them.sends(0, 4, **gathered[0]),
            them.sends(1, 4, parts[1], **gathered[1]),
            them.sends(0, 4, **gathered[0], **RESENT).gives(
                them.up(4, parts[1], contributors=0b011, **gathered[0], **RESENT)
            ),
            them.sends(2, 4, **gathered[2]).gives(them.alone(2, 4, **gathered[2])),
        ),
        tally(them, contributions=5, results=1, replays=1, flushes=1, late=1),
    )
    yield Case(
        "shaped-claims/flush-of-nothing",
        "So do headers of which nobody has brought values yet: their sum is 0.",
        values,
        them.state,
        (
            them.sends(0, 0, them.ones()),
            them.sends(0, 4, **gathered[0]),
            them.sends(2, 4, **gathered[2], **RESENT).gives(
                them.up(4, [0] * values, contributors=0b101, **gathered[2], **RESENT)
            ),
        ),
        tally(them, contributions=3, flushes=1),
    )


def put_out(values: int) -> Iterator[Case]:
    """Another job takes the slot over."""
    first = sharer(values, number=1)
    second = sharer(values, number=2, epoch=0x0004_0001)
    ones, part = first.ones(), second.numbers(8)
    of_first, of_second = said(first, Shape.GATHER, 1), said(second, Shape.SCATTER, 0)
    wanted = {"flags": Flag.WANTED}
    yield Case(
        "shaped-claims/put-out-by-a-header",
        "A packet without values that takes a slot over leaves with the sum that was there, and its"
        " own round begins at 0.",
        values,
        (*first.state, *second.state),
        (
            first.sends(0, 0, ones, exponent=140, value_type=1),
            first.sends(2, 0, part, exponent=140, value_type=1),
            second.sends(0, 0, **of_second[0]).gives(
                first.put_out(0, total(ones, part), 0b101, exponent=140, value_type=1, **wanted)
            ),
            second.sends(1, 0, part, **of_second[1]),
            second.sends(2, 0, ones, **of_second[2]).gives(
                second.up(0, total(part, ones), contributors=0b111, **of_second[2])
            ),
            second.sends(0, 4, ones),
            first.sends(0, 4, next_exponent=9).gives(second.put_out(4, ones, 0b001, **wanted)),
        ),
        {
            **tally(first, contributions=3, evictions=1),
            **tally(second, contributions=4, results=1, evictions=1),
        },
    )
    yield Case(
        "shaped-claims/put-out-of-headers",
        "Of a round that began without values a sum leaves, too: it may have some by now.",
        values,
        (*first.state, *second.state),
        (
            first.sends(0, 0, **of_first[0]),
            first.sends(1, 0, part, **of_first[1]),
            second.sends(1, 0, ones, **of_second[1]).gives(first.put_out(0, part, 0b011, **wanted)),
            first.sends(0, 4, **of_first[0]).gives(second.put_out(0, ones, 0b010, **wanted)),
            second.sends(0, 4, **of_second[0]).gives(
                first.put_out(4, [0] * values, 0b001, **wanted)
            ),
            second.sends(1, 4, part, **of_second[1]),
            second.sends(2, 4, **of_second[2], **RESENT).gives(
                second.up(4, part, contributors=0b111, **of_second[2], **RESENT)
            ),
        ),
        {
            **tally(first, contributions=3, evictions=2),
            **tally(second, contributions=4, results=1, evictions=1),
        },
    )


def alone(values: int) -> Iterator[Case]:
    """What goes on alone has what its worker gives."""
    first = sharer(values, number=1)
    second = sharer(values, number=2, epoch=0x0004_0001, age_us=NEVER_OLD, claimable=2)
    ones = first.ones()
    of = said(second, Shape.GATHER, 0)
    yield Case(
        "shaped-claims/alone",
        "A header that finds no slot goes on as it is.",
        values,
        (*first.state, *second.state),
        (
            first.sends(0, 0, ones),
            second.sends(1, 0, **of[1]).gives(second.alone(1, 0, **of[1], flags=Flag.COLLISION)),
            second.sends(1, 2, **of[1]).gives(second.alone(1, 2, **of[1])),
            second.sends(2, 1, **of[2], **RESENT).gives(second.alone(2, 1, **of[2], **RESENT)),
        ),
        {
            **tally(first, contributions=1),
            **tally(second, collisions=1, bypassed=1, missed=1),
        },
    )


def sets(values: int) -> Iterator[Case]:
    """At an aggregator, whose children are sets of workers."""
    them = sharer(values)
    job = replace(them.job, claims=None, parent=None, bits=(0b011, 0b100, 0b1000))
    root = replace(them, job=replace(job, sets=frozenset((0,))))
    part = them.numbers(2)
    of = said(them, Shape.GATHER, 1)
    yield Case(
        "shaped-claims/at-the-aggregator",
        "Headers of single workers join; a set takes the place of those who are in it.",
        values,
        root.state,
        (
            root.sends(0, 0, contributors=0b001, **of[0]),
            root.sends(0, 0, part, contributors=0b011, **of[1]),
            root.sends(1, 0, contributors=0b100, **of[2]),
            root.sends(2, 0, contributors=0b1000, **of[2]).gives(
                *(root.result(it, 0, part, **of[2]) for it in root.ranks)
            ),
            root.sends(0, 0, contributors=0b010, **of[1]).gives(root.replay(0, 0, part, **of[1])),
        ),
        tally(root, contributions=4, results=1, replays=1),
    )
