"""Mode shared: who finds a slot taken leaves word there, and the owner's sum carries it away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.p4 import names
from ina.protocol.spec import Flag
from ina.testing.case import Case
from ina.testing.cases.actors import tally, team, total
from ina.testing.cases.claims import MODE, Sharer, sharer
from ina.testing.cases.flushes import RESENT
from ina.testing.cases.sets import OTHER, RACK, aggregator
from ina.testing.traffic import ALWAYS_OLD, NEVER_OLD

NEXT = 8
"""A lane's next chunk in the same slot, here and at the aggregator."""


def cases(values: int) -> Iterator[Case]:
    """Who is told, with what, and who is not."""
    for case in (
        *told(values),
        *leaving_early(values),
        *forgotten(values),
        *not_told(values),
        *carried(values),
    ):
        yield replace(case, mode=MODE)


def cases_of_others(values: int) -> Iterator[Case]:
    """Of the program that has no shared slots."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    yield Case(
        "flag/0x80-ends",
        "Where jobs share no slots WANTED is not the slot's to gather: it ends at the switch.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, ones, flags=Flag.WANTED) for rank in (0, 1)),
            them.sends(2, 0, ones, flags=Flag.WANTED).gives(*them.results(0, threes)),
            them.sends(0, 0, ones, flags=Flag.WANTED).gives(them.replay(0, 0, threes)),
        ),
        tally(them, contributions=3, results=1, replays=1),
        mode=names.DEFAULT_MODE,
    )


def rivals(values: int) -> tuple[Sharer, Sharer, Sharer]:
    """Three jobs on the same slots, who take none that is in use."""
    return (
        sharer(values, 2, number=1, age_us=NEVER_OLD),
        sharer(values, 2, number=2, epoch=0x0004_0001, age_us=NEVER_OLD),
        sharer(values, 2, number=3, epoch=0x0005_0001, age_us=NEVER_OLD),
    )


def told(values: int) -> Iterator[Case]:
    """The owner, and nobody else."""
    one, two, three = rivals(values)
    ones, twos, others = one.ones(), [2] * values, one.numbers(8)
    opens = sharer(values, 2, number=1)  # takes the slots that nobody has had yet
    begun = (opens.sends(0, 0, ones, flags=Flag.OVERFLOW), opens.grows_patient())
    collides = two.sends(0, 0, others, next_exponent=99).gives(
        two.alone(0, 0, others, next_exponent=99, flags=Flag.COLLISION)
    )
    yield Case(
        "wanted/told-with-the-sum",
        "The owner's sum says that another wanted its slot; who wanted it learns no flag of it.",
        values,
        (*opens.state, *two.state),
        (
            *begun,
            collides,
            one.sends(1, 0, ones).gives(
                one.up(0, twos, contributors=0b11, flags=Flag.OVERFLOW | Flag.WANTED)
            ),
        ),
        {**tally(one, contributions=2, results=1), **tally(two, collisions=1)},
    )
    yield Case(
        "wanted/by-several",
        "By two jobs, and by one of them again: it is said once.",
        values,
        (*opens.state, *two.state, *three.state),
        (
            *begun,
            collides,
            three.sends(1, 0, ones).gives(three.alone(1, 0, ones, flags=Flag.COLLISION)),
            two.sends(1, NEXT, ones, flags=Flag.ECN).gives(
                two.alone(1, NEXT, ones, flags=Flag.ECN | Flag.COLLISION)
            ),
            one.sends(1, 0, ones).gives(
                one.up(0, twos, contributors=0b11, flags=Flag.OVERFLOW | Flag.WANTED)
            ),
        ),
        {
            **tally(one, contributions=2, results=1),
            **tally(two, collisions=2),
            **tally(three, collisions=1),
        },
    )
    yield Case(
        "wanted/of-that-slot",
        "Another lane of the owner's is not told.",
        values,
        (*opens.state, *two.state),
        (
            opens.sends(0, 1, ones),
            *begun,
            collides,
            one.sends(1, 1, ones).gives(one.up(1, twos, contributors=0b11)),
        ),
        {**tally(one, contributions=3, results=1), **tally(two, collisions=1)},
    )


def leaving_early(values: int) -> Iterator[Case]:
    """Sums that are not whole."""
    opens = sharer(values, 3, number=1)
    one, two = opens.aged(NEVER_OLD), rivals(values)[1]
    ones, twos = one.ones(), [2] * values
    collides = two.sends(0, 0, ones).gives(two.alone(0, 0, ones, flags=Flag.COLLISION))
    yield Case(
        "wanted/flushed",
        "A resend takes it along with the sum; what comes of the round after that is not told.",
        values,
        (*opens.state, *two.state),
        (
            opens.sends(0, 0, ones),
            opens.grows_patient(),
            collides,
            one.sends(1, 0, ones, copy=1).gives(
                one.up(0, twos, contributors=0b011, flags=Flag.WANTED, copy=1)
            ),
            one.sends(2, 0, ones).gives(one.alone(2, 0, ones)),
        ),
        {
            **tally(one, contributions=2, flushes=1, late=1),
            **tally(two, collisions=1),
        },
    )
    greedy = two.aged(ALWAYS_OLD)
    patient = rivals(values)[2]
    yield Case(
        "wanted/put-out",
        "A sum that another's packet takes up says it, told before or not; the newcomer's not.",
        values,
        (*opens.state, *greedy.state, *patient.state),
        (
            opens.sends(0, 0, ones),
            patient.sends(0, 0, ones).gives(patient.alone(0, 0, ones, flags=Flag.COLLISION)),
            greedy.sends(0, 0, ones).gives(opens.put_out(0, ones, 0b001, flags=Flag.WANTED)),
            greedy.sends(1, 0, ones).gives(greedy.up(0, twos, contributors=0b11)),
            opens.sends(0, 1, ones),
            greedy.sends(0, 1, ones).gives(opens.put_out(1, ones, 0b001, flags=Flag.WANTED)),
            greedy.sends(1, 1, ones).gives(greedy.up(1, twos, contributors=0b11)),
        ),
        {
            **tally(opens, contributions=2, evictions=2),
            **tally(patient, collisions=1),
            **tally(greedy, contributions=4, results=2),
        },
    )


def forgotten(values: int) -> Iterator[Case]:
    """A round begins without it."""
    opens = sharer(values, 2, number=1)
    one, two, _ = rivals(values)
    ones, twos = one.ones(), [2] * values
    collides = two.sends(0, 0, ones).gives(two.alone(0, 0, ones, flags=Flag.COLLISION))
    claimed = (opens.sends(0, 0, ones), opens.grows_patient())
    yield Case(
        "wanted/new-round-forgets",
        "Neither the round after one that was told says it, nor one that begins in its place.",
        values,
        (*opens.state, *two.state),
        (
            *claimed,
            collides,
            one.sends(1, 0, ones).gives(one.up(0, twos, contributors=0b11, flags=Flag.WANTED)),
            one.sends(0, NEXT, ones),
            one.sends(1, NEXT, ones).gives(one.up(NEXT, twos, contributors=0b11)),
            one.sends(0, 2 * NEXT, ones),
            collides,
            one.sends(0, 3 * NEXT, ones),
            one.sends(1, 3 * NEXT, ones).gives(one.up(3 * NEXT, twos, contributors=0b11)),
        ),
        {**tally(one, contributions=7, results=3), **tally(two, collisions=2)},
    )
    yield Case(
        "wanted/after-the-sum",
        "Who comes when the sum has left, and its result has not come, tells nobody.",
        values,
        (*opens.state, *two.state),
        (
            *claimed,
            one.sends(1, 0, ones).gives(one.up(0, twos, contributors=0b11)),
            collides,
            one.sends(0, NEXT, ones),
            one.sends(1, NEXT, ones).gives(one.up(NEXT, twos, contributors=0b11)),
        ),
        {**tally(one, contributions=4, results=2), **tally(two, collisions=1)},
    )
    whole = one.told(0, values, contributors=0b11)
    yield Case(
        "wanted/new-owner-is-not-told",
        "Who claims the slot when it is free begins without it, too.",
        values,
        (*opens.state, *two.state),
        (
            *claimed,
            one.sends(1, 0, ones).gives(one.up(0, twos, contributors=0b11)),
            collides,
            one.down(whole, twos).gives(*one.handed_to_all(whole, twos)),
            two.sends(0, NEXT, ones),
            two.sends(1, NEXT, ones).gives(two.up(NEXT, twos, contributors=0b11)),
        ),
        {
            **tally(one, contributions=2, results=1, passed_down=1),
            **tally(two, contributions=2, results=1, collisions=1),
        },
    )


def not_told(values: int) -> Iterator[Case]:
    """Packets that would not have claimed the slot."""
    opens = sharer(values, 2, number=1)
    one, two, _ = rivals(values)
    ones, twos = one.ones(), [2] * values
    claimed = (opens.sends(0, 0, ones), opens.grows_patient())
    whole = one.sends(1, 0, ones).gives(one.up(0, twos, contributors=0b11))
    yield Case(
        "wanted/not-by-resends",
        "A packet that is sent again wants no slot, nor one that says so to pass it by.",
        values,
        (*opens.state, *two.state),
        (
            *claimed,
            two.sends(0, 0, ones, **RESENT).gives(two.alone(0, 0, ones, **RESENT)),
            two.sends(1, 0, ones, flags=Flag.RESEND).gives(
                two.alone(1, 0, ones, flags=Flag.RESEND)
            ),
            whole,
        ),
        {**tally(one, contributions=2, results=1), **tally(two, missed=2)},
    )
    theirs = two.told(0, values, contributors=0b11)
    yield Case(
        "wanted/not-by-results",
        "Nor does a result of another job's that passes down.",
        values,
        (*opens.state, *two.state),
        (*claimed, two.down(theirs, twos).gives(*two.handed_to_all(theirs, twos)), whole),
        {**tally(one, contributions=2, results=1), **tally(two, passed_down=1)},
    )
    narrow = sharer(values, 2, number=2, epoch=0x0004_0001, claimable=2, age_us=NEVER_OLD)
    yield Case(
        "wanted/not-by-lanes-without-slot",
        "Nor does what has no slot here, whoever has that place.",
        values,
        (*opens.state, *narrow.state),
        (
            opens.sends(0, 2, ones),
            opens.grows_patient(),
            narrow.sends(0, 2, ones).gives(narrow.alone(0, 2, ones)),
            one.sends(1, 2, ones).gives(one.up(2, twos, contributors=0b11)),
        ),
        {**tally(one, contributions=2, results=1), **tally(narrow, bypassed=1)},
    )


def carried(values: int) -> Iterator[Case]:
    """From the slot to the workers."""
    them = sharer(values, 2)
    ones, twos = them.ones(), [2] * values
    yield Case(
        "wanted/from-below",
        "What a switch below was told goes up with the sum here, or with its own packet.",
        values,
        them.state,
        (
            them.sends(0, 0, ones, flags=Flag.WANTED),
            them.sends(1, 0, ones).gives(them.up(0, twos, contributors=0b11, flags=Flag.WANTED)),
            them.sends(0, NEXT, ones),
            them.sends(1, 0, ones, flags=Flag.WANTED).gives(
                them.alone(1, 0, ones, flags=Flag.WANTED)
            ),
            them.sends(1, NEXT, ones).gives(them.up(NEXT, twos, contributors=0b11)),
        ),
        tally(them, contributions=4, results=2, late=1),
    )
    root = team(values)
    parts = [root.numbers(rank) for rank in root.ranks]
    yield Case(
        "wanted/in-the-result",
        "An aggregator says it in the result, and again in replays; the next round forgets.",
        values,
        root.state,
        (
            root.sends(0, 0, parts[0]),
            root.sends(1, 0, parts[1], flags=Flag.WANTED | Flag.RESEND),
            root.sends(2, 0, parts[2]).gives(*root.results(0, total(*parts), flags=Flag.WANTED)),
            root.sends(0, 0, parts[0]).gives(root.replay(0, 0, total(*parts), flags=Flag.WANTED)),
            root.sends(0, 0, parts[0], flags=Flag.ECN).gives(
                root.replay(0, 0, total(*parts), flags=Flag.WANTED)
            ),
            root.sends(0, NEXT, parts[0]),
            root.sends(1, NEXT, parts[1]),
            root.sends(2, NEXT, parts[2]).gives(*root.results(NEXT, total(*parts))),
        ),
        tally(root, contributions=6, results=2, replays=2),
    )
    yield from carried_down(values)


def carried_down(values: int) -> Iterator[Case]:
    """At the aggregator, and from there down."""
    them = sharer(values, 2)
    ones, twos = them.ones(), [2] * values
    above = aggregator(values)
    yield Case(
        "sets/wanted",
        "So does one whose parts are sets; what comes when all are in changes no replay.",
        values,
        above.state,
        (
            above.sends(RACK, 0, ones, contributors=0b0111, flags=Flag.WANTED),
            above.sends(OTHER, 0, ones, contributors=0b11000).gives(
                *above.results(0, twos, contributors=0b11111, flags=Flag.WANTED)
            ),
            above.sends(RACK, NEXT, ones, contributors=0b0111),
            above.sends(OTHER, NEXT, ones, contributors=0b11000).gives(
                *above.results(NEXT, twos, contributors=0b11111)
            ),
            above.sends(RACK, NEXT, ones, contributors=0b0100, flags=Flag.WANTED).gives(
                above.replay(RACK, NEXT, twos, contributors=0b11111)
            ),
        ),
        tally(above, contributions=4, results=2, replays=1),
    )
    whole = replace(them.told(0, values, contributors=0b11), flags=Flag.WANTED)
    yield Case(
        "wanted/on-its-way-down",
        "A result that says it says it to all below.",
        values,
        them.state,
        (them.down(whole, twos).gives(*them.handed_to_all(whole, twos)),),
        tally(them, passed_down=1),
    )
