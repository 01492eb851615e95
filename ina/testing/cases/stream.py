"""Packets whose last word is a block's number, of jobs of mode ``stream``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ina.p4 import names
from ina.protocol.spec import DropReason, Flag
from ina.protocol.stream import NO_BLOCK
from ina.testing.case import Case, ItemChange, Step
from ina.testing.cases.actors import Team, tally, team, total
from ina.testing.cases.levels import inner

MODE = names.STREAM


def cases(values: int) -> Iterator[Case]:
    """What the slot keeps of the last word; packets that have it alone; trees; other jobs."""
    yield from least(values)
    yield from alone(values)
    yield from rounds(values)
    yield from trees(values)
    yield from beside(values)


def streams(values: int, size: int = 3, *, number: int = 1, slots: int = 8) -> Team:
    """A job whose packets' last word is a number."""
    it = team(values, size, number=number, slots=slots)
    return replace(it, job=replace(it.job, is_stream=True))


def words(them: Team, start: int, follows: int) -> list[int]:
    """A packet's: values that differ, and the block that its sender has next."""
    return [*them.numbers(start)[:-1], _signed(follows)]


def zeros(them: Team, follows: int) -> list[int]:
    """The sum that a packet which says that alone stands for."""
    return [*[0] * (them.values - 1), _signed(follows)]


def _signed(word: int) -> int:
    return (word + 2**31) % 2**32 - 2**31


def summed(*parts: Sequence[int]) -> list[int]:
    """The values' sums, and the least of the last words."""
    last = min(part[-1] % 2**32 for part in parts)
    return [*total(*(part[:-1] for part in parts)), _signed(last)]


def _case(name: str, about: str, them: Team, *steps: Step, **counted: int) -> Case:
    counts = tally(them, drops={}, **counted)
    return Case(name, about, them.values, them.state, steps, counts, mode=MODE)


def least(values: int) -> Iterator[Case]:
    """Of the last words, the least; without a sign."""
    them = streams(values)
    for name, said in {
        "first": (5, 9, 7),
        "second": (9, 5, 7),
        "third": (9, 7, 5),
        "none": (NO_BLOCK, NO_BLOCK, NO_BLOCK),
        "none-but-one": (NO_BLOCK, 6, NO_BLOCK),
        "without-a-sign": (NO_BLOCK - 1, 2**31, 2**31 + 1),
        "across-the-sign": (2**31, 2**31 - 1, NO_BLOCK),
        "zero": (3, 0, NO_BLOCK),
    }.items():
        parts = [words(them, rank, said[rank]) for rank in them.ranks]
        yield _case(
            f"stream/least-{name}",
            "The last word of the result is the least of the round; the others are summed.",
            them,
            *(them.sends(rank, 9, parts[rank]) for rank in (0, 1)),
            them.sends(2, 9, parts[2]).gives(*them.results(9, summed(*parts))),
            contributions=3,
            results=1,
        )


def alone(values: int) -> Iterator[Case]:
    """A packet with its last word alone is one of zeros and that word."""
    them = streams(values)
    full = [words(them, rank, 40 + rank) for rank in them.ranks]
    for name, short in {"begins": 0, "is-between": 1, "completes": 2}.items():
        parts = [zeros(them, 11) if rank == short else full[rank] for rank in them.ranks]
        said = [[11] if rank == short else full[rank] for rank in them.ranks]
        yield _case(
            f"stream/alone-{name}",
            "Whoever has a block of zeros sends `next` alone; the result has all words.",
            them,
            *(them.sends(rank, 9, said[rank]) for rank in (0, 1)),
            them.sends(2, 9, said[2]).gives(*them.results(9, summed(*parts))),
            contributions=3,
            results=1,
        )
    yield _case(
        "stream/alone-all",
        "If all blocks of a round are zero, so is its result.",
        them,
        *(them.sends(rank, 9, [20 + rank]) for rank in (0, 1)),
        them.sends(2, 9, [22]).gives(*them.results(9, zeros(them, 20))),
        contributions=3,
        results=1,
    )
    yield from asked_again(values)


def asked_again(values: int) -> Iterator[Case]:
    """Such packets once more, of one worker, and what is neither shape."""
    them = streams(values)
    full = [words(them, rank, 40 + rank) for rank in them.ranks]
    done = summed(full[0], zeros(them, 11), full[2])
    yield _case(
        "stream/alone-repeated",
        "Repeated in an open round it is dropped; behind it, answered with all words.",
        them,
        them.sends(0, 9, full[0]),
        them.sends(1, 9, [11]),
        them.sends(1, 9, [3]),
        them.sends(2, 9, full[2]).gives(*them.results(9, done)),
        them.sends(1, 9, [3]).gives(them.replay(1, 9, done)),
        them.sends(0, 9, full[1]).gives(them.replay(0, 9, done)),
        contributions=3,
        duplicates=1,
        results=1,
        replays=2,
    )
    single = streams(values, 1)
    yield _case(
        "stream/alone-of-one-worker",
        "It is complete at once.",
        single,
        single.sends(0, 0, [4]).gives(*single.results(0, zeros(single, 4))),
        single.sends(0, 1, words(single, 3, 6)).gives(*single.results(1, words(single, 3, 6))),
        contributions=2,
        results=2,
    )
    yield _case(
        "stream/alone-flags",
        "What else it says is gathered as ever.",
        single,
        single.sends(0, 0, [4], flags=Flag.ECN, digest=9, next_exponent=130).gives(
            *single.results(0, zeros(single, 4), flags=Flag.ECN, digest=9, next_exponent=130)
        ),
        contributions=1,
        results=1,
    )
    yield Case(
        "stream/neither-shape",
        "Two words are neither all nor the last one: malformed.",
        values,
        them.state,
        (them.sends(0, 9, [1, 2]), them.sends(0, 9, [7], value_count=2)),
        tally(them, drops={DropReason.MALFORMED: 2}),
        mode=MODE,
    )


def rounds(values: int) -> Iterator[Case]:
    """Nothing of a round outlives it."""
    them = streams(values, 2)
    slots = them.job.slots
    first, none = [words(them, 1, 2), words(them, 2, 3)], [_signed(NO_BLOCK)]
    yield _case(
        "stream/next-round",
        "A newer round begins with its own least word, and with zeros if that is all it has.",
        them,
        them.sends(0, 1, first[0]),
        them.sends(1, 1, first[1]).gives(*them.results(1, summed(*first))),
        them.sends(0, 1 + slots, [9]),
        them.sends(1, 1 + slots, [_signed(NO_BLOCK)]).gives(
            *them.results(1 + slots, zeros(them, 9))
        ),
        them.sends(0, 1, [1]),
        them.sends(1, 1 + 2 * slots, words(them, 5, 8)),
        them.sends(0, 1 + 2 * slots, none).gives(*them.results(1 + 2 * slots, words(them, 5, 8))),
        contributions=6,
        results=3,
        stale=1,
    )
    after = replace(them, job=replace(them.job, epoch=them.job.epoch + 1))
    yield _case(
        "stream/newer-epoch",
        "So does a newer epoch.",
        them,
        them.sends(0, 801, words(them, 1, 2)),
        ItemChange(them.state[::-1], after.state),
        after.sends(1, 1, [7]),
        after.sends(0, 1, words(them, 4, 9)).gives(*after.results(1, words(them, 4, 7))),
        contributions=3,
        results=1,
    )
    yield _case(
        "stream/exponents",
        "A round without any word begins at 0, as in mode pool.",
        them,
        them.sends(0, 1, words(them, 1, 2)),
        them.sends(1, 1, words(them, 2, 3)).gives(
            *them.results(1, summed(words(them, 1, 2), words(them, 2, 3)))
        ),
        them.sends(0, 1 + slots, next_exponent=140),
        them.sends(1, 1 + slots, next_exponent=150).gives(
            *them.results(1 + slots, next_exponent=150)
        ),
        contributions=4,
        results=2,
    )


def trees(values: int) -> Iterator[Case]:
    """A switch with a parent sends up one packet with the least of its children's."""
    below = inner(values, 2)
    them = replace(below, job=replace(below.job, is_stream=True))
    parts = [words(them, 1, 8), zeros(them, 5)]
    up = them.up(4, summed(*parts))
    yield _case(
        "stream/inner",
        "The sum goes up with all words; once more, if a child asks again.",
        them,
        them.sends(0, 4, parts[0]),
        them.sends(1, 4, [5]).gives(up),
        them.sends(1, 4, [5]).gives(up),
        them.sends(0, 4, parts[0]).gives(up),
        contributions=2,
        results=1,
        replays=2,
    )
    whole = words(them, 7, 9)
    told = them.told(4, len(whole))
    yield _case(
        "stream/inner-down",
        "The parent's result is handed down as it is.",
        them,
        them.down(told, whole).gives(*them.handed_to_all(told, whole)),
        passed_down=1,
    )


def beside(values: int) -> Iterator[Case]:
    """Other jobs' last words are values."""
    stream = streams(values, 2, slots=4)
    pool = team(values, 2, number=2, first_slot=64, slots=4, ports=(2, 1))
    ones = pool.ones()
    parts = [words(stream, 1, 6), words(stream, 2, 5)]
    yield Case(
        "stream/beside-a-pool",
        "A job of mode pool on the same switch sums all words.",
        values,
        (*stream.state, *pool.state),
        (
            stream.sends(0, 1, parts[0]),
            pool.sends(0, 1, ones),
            stream.sends(1, 1, parts[1]).gives(*stream.results(1, summed(*parts))),
            pool.sends(1, 1, ones).gives(*pool.results(1, [2] * values)),
        ),
        {
            **tally(stream, contributions=2, results=1),
            **tally(pool, contributions=2, results=1),
        },
        mode=MODE,
    )
