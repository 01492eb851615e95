"""The slot's state machine, row by row: newer, equal, repeated, older."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.protocol.spec import DropReason
from ina.testing.case import Case, ItemChange
from ina.testing.cases.actors import Team, tally, team, total


def cases(values: int) -> Iterator[Case]:
    """One case a row, and the ways in which rows follow each other."""
    yield from completion(values)
    yield from repeats(values)
    yield from takeovers(values)
    yield from serial_numbers(values)
    yield from arithmetic(values)
    yield from places(values)


def completion(values: int) -> Iterator[Case]:
    """A sum is complete when every worker is in it, in whatever order they come."""
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        them = team(values)
        parts = [them.numbers(rank) for rank in them.ranks]
        *first, last = order
        yield Case(
            f"completion/order-{''.join(map(str, order))}",
            "Contributions are absorbed until the last one, which leaves as the result to all.",
            values,
            them.state,
            (
                *(them.sends(rank, 9, parts[rank]) for rank in first),
                them.sends(last, 9, parts[last]).gives(*them.results(9, total(*parts))),
            ),
            tally(them, contributions=3, results=1),
        )
    alone = team(values, 1)
    yield Case(
        "completion/alone",
        "A job of one worker: every contribution is complete at once.",
        values,
        alone.state,
        tuple(
            alone.sends(0, seq, alone.numbers(seq)).gives(*alone.results(seq, alone.numbers(seq)))
            for seq in range(12)
        ),
        tally(alone, contributions=12, results=12),
    )
    pair = team(values, 2)
    yield Case(
        "completion/open",
        "A round that lacks a worker sends nothing, however long it waits.",
        values,
        pair.state,
        tuple(pair.sends(0, seq, pair.ones()) for seq in range(4)),
        tally(pair, contributions=4),
    )


def repeats(values: int) -> Iterator[Case]:
    """A contribution that comes again is never added again."""
    them = team(values)
    ones, others = them.ones(), them.numbers(5)
    yield Case(
        "repeat/open-round",
        "Repeated before the sum is complete: dropped, and its other values are not added.",
        values,
        them.state,
        (
            them.sends(0, 3, ones),
            them.sends(0, 3, others),
            them.sends(1, 3, ones),
            them.sends(0, 3, ones),
            them.sends(2, 3, ones).gives(*them.results(3, total(ones, ones, ones))),
        ),
        tally(them, contributions=3, duplicates=2, results=1),
    )
    done = tuple(them.sends(rank, 3, ones) for rank in (0, 1))
    last = them.sends(2, 3, ones).gives(*them.results(3, total(ones, ones, ones)))
    for rank in them.ranks:
        yield Case(
            f"repeat/replay-to-{rank}",
            "Repeated after completion: the stored sum goes back to that worker alone.",
            values,
            them.state,
            (
                *done,
                last,
                them.sends(rank, 3, others).gives(them.replay(rank, 3, [3] * values)),
                them.sends(rank, 3, others).gives(them.replay(rank, 3, [3] * values)),
            ),
            tally(them, contributions=3, results=1, replays=2),
        )
    yield Case(
        "repeat/replay-without-values",
        "Repeated as an exponent packet: the answer has no values either.",
        values,
        them.state,
        (*done, last, them.sends(1, 3).gives(them.replay(1, 3))),
        tally(them, contributions=3, results=1, replays=1),
    )
    other = them.job.slots // 2 + 3
    yield Case(
        "repeat/replay-while-the-next-round-runs",
        "Two versions: the stored sum of chunk t stays while t + W is being summed.",
        values,
        them.state,
        (
            *done,
            last,
            them.sends(0, other, others),
            them.sends(1, 3, others).gives(them.replay(1, 3, [3] * values)),
            them.sends(1, other, others),
            them.sends(2, 3, others).gives(them.replay(2, 3, [3] * values)),
            them.sends(2, other, others).gives(*them.results(other, total(*[others] * 3))),
        ),
        tally(them, contributions=6, results=2, replays=2),
    )


def takeovers(values: int) -> Iterator[Case]:
    """A newer tag takes the slot over, an older one is dropped."""
    them = team(values, 2)
    slots = them.job.slots
    ones, others = them.ones(), them.numbers(2)
    full = (them.sends(0, 1, ones), them.sends(1, 1, ones).gives(*them.results(1, [2] * values)))
    later = slots + 1
    next_round = (
        them.sends(0, later, others),
        them.sends(1, later, ones).gives(*them.results(later, total(others, ones))),
    )
    yield Case(
        "takeover/complete-round",
        "A newer sequence number overwrites a finished sum; nothing of it remains.",
        values,
        them.state,
        (*full, *next_round),
        tally(them, contributions=4, results=2),
    )
    yield Case(
        "takeover/open-round",
        "A newer sequence number overwrites an unfinished sum as well.",
        values,
        them.state,
        (them.sends(0, 1, ones), *next_round),
        tally(them, contributions=3, results=1),
    )
    for late in (later - slots, (later - 2 * slots) % 2**32):
        yield Case(
            f"takeover/stale-{late}",
            "An older sequence number is dropped: its worker has moved on.",
            values,
            them.state,
            (
                *full,
                them.sends(0, later, others),
                them.sends(0, late, ones),
                them.sends(1, late, ones),
                them.sends(1, later, ones).gives(*them.results(later, total(others, ones))),
            ),
            tally(them, contributions=4, results=2, stale=2),
        )
    much_later = 5 * slots + 1
    yield Case(
        "takeover/copy-many-rounds-late",
        "A copy that comes after several rounds of its slot is older still.",
        values,
        them.state,
        (
            *full,
            *next_round,
            them.sends(1, much_later, ones),
            them.sends(1, 1, ones),
            them.sends(1, later, ones),
            them.sends(0, much_later, ones).gives(*them.results(much_later, [2] * values)),
        ),
        tally(them, contributions=6, results=3, stale=2),
    )
    yield from epochs(values, them)


def epochs(values: int, before: Team) -> Iterator[Case]:
    """A job starts over on the same slots."""
    ones = before.ones()
    after = replace(before, job=replace(before.job, epoch=before.job.epoch + 1))
    restart = ItemChange(before.state[::-1], after.state)
    yield Case(
        "takeover/newer-epoch",
        "A newer epoch takes slots over, though its sequence numbers begin again.",
        values,
        before.state,
        (
            before.sends(0, 801, ones),
            restart,
            after.sends(0, 1, after.numbers(1)),
            after.sends(1, 1, ones).gives(*after.results(1, total(after.numbers(1), ones))),
        ),
        tally(before, contributions=3, results=1),
    )
    yield Case(
        "takeover/ghost",
        "Packets of the former epoch are refused, and counted.",
        values,
        before.state,
        (
            before.sends(0, 1, ones),
            restart,
            before.sends(1, 1, ones),
            after.sends(0, 1, ones),
            before.sends(1, 1, ones),
            after.sends(1, 1, ones).gives(*after.results(1, [2] * values)),
        ),
        tally(before, contributions=3, results=1, drops={DropReason.JOB: 2}),
    )
    yield Case(
        "takeover/older-epoch",
        "An epoch that was issued before never takes a slot back.",
        values,
        after.state,
        (
            after.sends(0, 1, ones),
            ItemChange(after.state[::-1], before.state),
            before.sends(0, 801, ones),
            before.sends(1, 801, ones),
        ),
        tally(before, contributions=1, stale=2),
    )
    same_low_bits = replace(before, job=replace(before.job, epoch=before.job.epoch + (1 << 16)))
    yield Case(
        "takeover/epoch-with-equal-low-bits",
        "The slot compares the whole epoch, not the 16 bits in the packet.",
        values,
        before.state,
        (
            before.sends(0, 1, ones),
            ItemChange(before.state[::-1], same_low_bits.state),
            same_low_bits.sends(1, 1, ones),
            same_low_bits.sends(0, 1, ones).gives(*same_low_bits.results(1, [2] * values)),
        ),
        tally(before, contributions=3, results=1),
    )


def serial_numbers(values: int) -> Iterator[Case]:
    """Sequence numbers and epochs wrap around (RFC 1982)."""
    them = team(values, 1)
    slots = them.job.slots
    for name, old, new in (
        ("wrap", 2**32 - slots, 0),
        ("sign", 2**31 - slots, 2**31),
        ("farthest-newer", 0, 2**31 - slots),
    ):
        yield Case(
            f"serial/{name}",
            f"Sequence number {new} is newer than {old}, and {old} older than {new}.",
            values,
            them.state,
            (
                them.sends(0, old, them.ones()).gives(*them.results(old, them.ones())),
                them.sends(0, new, [5] * values).gives(*them.results(new, [5] * values)),
                them.sends(0, old, them.ones()),
                them.sends(0, new, them.ones()).gives(them.replay(0, new, [5] * values)),
            ),
            tally(them, contributions=2, results=2, stale=1, replays=1),
        )
    yield Case(
        "serial/opposite",
        "Exactly 2^31 apart cannot be told: it counts as older, and is never summed.",
        values,
        them.state,
        (
            them.sends(0, 8, them.ones()).gives(*them.results(8, them.ones())),
            them.sends(0, 2**31 + 8, them.ones()),
        ),
        tally(them, contributions=1, results=1, stale=1),
    )
    before = team(values, 1, epoch=0x7FFF_FFFF)
    after = team(values, 1, epoch=0x8000_0001)
    yield Case(
        "serial/epoch",
        "Epochs are compared in the same way.",
        values,
        before.state,
        (
            before.sends(0, 0, before.ones()).gives(*before.results(0, before.ones())),
            ItemChange(before.state[::-1], after.state),
            after.sends(0, 0, [4] * values).gives(*after.results(0, [4] * values)),
        ),
        tally(before, contributions=2, results=2),
    )


def arithmetic(values: int) -> Iterator[Case]:
    """Values are added as int32, two's complement, wrapping."""
    them = team(values)
    high, low = 2**31 - 1, -(2**31)
    for name, parts in {
        "overflow": ([high] * values, [1] * values, [0] * values),
        "underflow": ([low] * values, [-1] * values, [0] * values),
        "twice-round": ([high] * values, [high] * values, [high] * values),
        "signs": ([-1] * values, [1] * values, [-7] * values),
        "each-its-own": tuple([rank * i - 31 * i * i for i in range(values)] for rank in range(3)),
    }.items():
        yield Case(
            f"sum/{name}",
            "Sums wrap around modulo 2^32, each value by itself.",
            values,
            them.state,
            (
                them.sends(0, 0, parts[0]),
                them.sends(1, 0, parts[1]),
                them.sends(2, 0, parts[2]).gives(*them.results(0, total(*parts))),
            ),
            tally(them, contributions=3, results=1),
        )
    secret, ones = them.numbers(77), them.ones()
    yield Case(
        "sum/no-values-of-an-earlier-round",
        "A round that begins without values begins at 0: nobody reads what the slot had before.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, secret) for rank in (0, 1)),
            them.sends(2, 0, secret).gives(*them.results(0, total(*[secret] * 3))),
            them.sends(0, 8),
            them.sends(1, 8, [0] * values),
            them.sends(2, 8, ones).gives(*them.results(8, ones)),
            them.sends(0, 8, secret).gives(them.replay(0, 8, ones)),
        ),
        tally(them, contributions=6, results=2, replays=1),
    )


def places(values: int) -> Iterator[Case]:
    """A job's slots are its own."""
    first = team(values, 2, number=1, first_slot=0, slots=4)
    second = team(values, 2, number=2, first_slot=4, slots=4, ports=(2, 1))
    ones, sevens = first.ones(), [7] * values
    yield Case(
        "places/two-jobs",
        "Jobs side by side: equal slots and sequence numbers are of different rounds.",
        values,
        (*first.state, *second.state),
        tuple(
            step
            for seq in range(6)
            for step in (
                first.sends(0, seq, ones),
                second.sends(1, seq, sevens),
                first.sends(1, seq, ones).gives(*first.results(seq, [2] * values)),
                second.sends(0, seq, sevens).gives(*second.results(seq, [14] * values)),
            )
        ),
        {
            **tally(first, contributions=12, results=6),
            **tally(second, contributions=12, results=6),
        },
    )
    for name, first_slot in (("first", 0), ("last", 8192 - 2)):
        them = team(values, 2, first_slot=first_slot, slots=2)
        yield Case(
            f"places/{name}-slots",
            "The slots at the ends of the switch's memory.",
            values,
            them.state,
            tuple(
                step
                for seq in range(4)
                for step in (
                    them.sends(0, seq, them.numbers(seq)),
                    them.sends(1, seq, ones).gives(
                        *them.results(seq, total(them.numbers(seq), ones))
                    ),
                )
            ),
            tally(them, contributions=8, results=4),
        )
