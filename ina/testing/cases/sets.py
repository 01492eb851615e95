"""Mode shared: contributions of several workers at once, at an aggregator and between switches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from ina.protocol.spec import DropReason, Flag, path_of
from ina.testing.case import Case
from ina.testing.cases.actors import Team, tally, team, total
from ina.testing.cases.claims import MODE, sharer

RACK, OTHER = 0, 1
"""Children of the aggregator: a switch of three workers, and one of two."""
BITS = (0b0111, 0b11000)
ALL = 0b11111

T = TypeVar("T", bound=Team)


def aggregator(values: int) -> Team:
    """Two switches below it, of five workers."""
    return of_sets(team(values, 2))


def of_sets(them: T) -> T:
    """The same team, whose children are those two switches."""
    return replace(them, job=replace(them.job, bits=BITS, sets=frozenset({RACK, OTHER})))


def cases(values: int) -> Iterator[Case]:
    """Who may be added to whom."""
    for case in (*disjoint(values), *overlaps(values), *strangers(values), *between(values)):
        yield replace(case, mode=MODE)


def disjoint(values: int) -> Iterator[Case]:
    """Sets of which nobody is in yet."""
    them = aggregator(values)
    parts = [them.numbers(start) for start in range(3)]
    said: dict[str, Any] = {"path": path_of((RACK, 2)), "copy": 1, "level": 1}
    yield Case(
        "sets/added",
        "A set is added where none of it is in; when all are, the result names all.",
        values,
        them.state,
        (
            them.sends(RACK, 0, parts[0], contributors=0b0101, digest=2, level=1),
            them.sends(OTHER, 0, parts[1], contributors=0b11000, digest=2, level=1),
            them.sends(RACK, 0, parts[2], contributors=0b0010, digest=1, **said).gives(
                *them.results(0, total(*parts), contributors=ALL, digest=5, **said)
            ),
        ),
        tally(them, contributions=3, results=1),
    )
    ones = them.ones()
    sums = [2] * values
    yield Case(
        "sets/replay",
        "What comes when all are in gets the result, for the one whose packet it was.",
        values,
        them.state,
        (
            them.sends(RACK, 0, ones, contributors=0b0111),
            them.sends(OTHER, 0, ones, contributors=0b11000).gives(
                *them.results(0, sums, contributors=ALL)
            ),
            them.sends(RACK, 0, ones, contributors=0b0100, **said).gives(
                them.replay(RACK, 0, sums, contributors=ALL, **said)
            ),
            them.sends(OTHER, 0, ones, contributors=0b11000).gives(
                them.replay(OTHER, 0, sums, contributors=ALL)
            ),
        ),
        tally(them, contributions=2, results=1, replays=2),
    )


def overlaps(values: int) -> Iterator[Case]:
    """Sets of which some are in."""
    them = aggregator(values)
    ones, others = them.ones(), them.numbers(7)
    rest = them.sends(OTHER, 0, ones, contributors=0b11000)
    yield Case(
        "sets/superset",
        "A set that has all who are in, and others, takes their place.",
        values,
        them.state,
        (
            them.sends(RACK, 0, others, contributors=0b0010, digest=9, next_exponent=200),
            them.sends(RACK, 0, ones, contributors=0b0111, digest=3, next_exponent=4),
            rest.gives(*them.results(0, [2] * values, contributors=ALL, digest=3, next_exponent=4)),
        ),
        tally(them, contributions=3, results=1),
    )
    yield Case(
        "sets/others-are-in",
        "It does not where others are in as well, and is not added: the next resend comes alone.",
        values,
        them.state,
        (
            them.sends(RACK, 0, ones, contributors=0b0010),
            them.sends(OTHER, 0, ones, contributors=0b01000),
            them.sends(RACK, 0, others, contributors=0b0111),
            them.sends(RACK, 0, others, contributors=0b0110),
            them.sends(RACK, 0, others, contributors=0b0010),
            them.sends(RACK, 0, ones, contributors=0b0101),
            them.sends(OTHER, 0, ones, contributors=0b10000).gives(
                *them.results(0, [4] * values, contributors=ALL)
            ),
        ),
        tally(them, contributions=4, results=1, duplicates=3),
    )


def strangers(values: int) -> Iterator[Case]:
    """A switch speaks for those who send to it."""
    them = aggregator(values)
    ones = them.ones()
    yield Case(
        "sets/strangers",
        "A set of nobody, or with somebody who does not send to its sender, is dropped.",
        values,
        them.state,
        (
            them.sends(RACK, 0, ones, contributors=0),
            them.sends(RACK, 0, ones, contributors=0b01001),
            them.sends(OTHER, 0, ones, contributors=0b00100),
            them.sends(RACK, 0, ones, contributors=1 << 31),
            them.sends(RACK, 0, ones, contributors=0b0111),
            them.sends(OTHER, 0, ones, contributors=0b11000).gives(
                *them.results(0, [2] * values, contributors=ALL)
            ),
        ),
        tally(them, contributions=2, results=1, drops={DropReason.MEMBER: 4}),
    )


def between(values: int) -> Iterator[Case]:
    """A switch that shares its slots, above others that do."""
    them = of_sets(sharer(values, 2))
    ones, others = them.ones(), them.numbers(7)
    alone = them.up(0, others, contributors=0b0110)
    yield Case(
        "sets/on-their-way",
        "Sets are added as parts are; of one that is in in part, the packet goes on alone.",
        values,
        them.state,
        (
            them.sends(RACK, 0, ones, contributors=0b0011),
            them.sends(RACK, 0, others, contributors=0b0110).gives(alone),
            them.sends(RACK, 0, others, contributors=0b0001),
            them.sends(OTHER, 0, ones, contributors=0b11000),
            them.sends(RACK, 0, ones, contributors=0b0100).gives(
                them.up(0, [3] * values, contributors=ALL)
            ),
        ),
        tally(them, contributions=3, results=1, late=1, duplicates=1),
    )
    yield Case(
        "sets/flushed-on-their-way",
        "A resent set takes the sum along, itself added only where none of it is in.",
        values,
        them.state,
        (
            them.sends(RACK, 0, ones, contributors=0b0011),
            them.sends(RACK, 0, others, contributors=0b0110, flags=Flag.RESEND).gives(
                them.up(0, ones, contributors=0b0011, flags=Flag.RESEND)
            ),
            them.sends(RACK, 1, ones, contributors=0b0011),
            them.sends(OTHER, 1, ones, contributors=0b01000, copy=3).gives(
                them.up(1, [2] * values, contributors=0b01011, copy=3)
            ),
        ),
        tally(them, contributions=3, replays=1, flushes=2),
    )
