"""What a slot gathers besides values: exponents, digests, checks, flags, marks of congestion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from ina.protocol.coding import column_limit
from ina.protocol.spec import MAX_WORKERS, DropReason, Flag, Kind, ValueType
from ina.testing import packed
from ina.testing.case import Arrival, Case, ItemChange
from ina.testing.cases.actors import Team, tally, team, total
from ina.testing.frames import CE

STICKY = (Flag.ECN, Flag.OVERFLOW, Flag.NON_FINITE)
PASSING = (Flag.RESEND, Flag.COLLISION, Flag.PARTIAL, Flag.REPLAY)


def cases(values: int) -> Iterator[Case]:
    """Exponents, digests, checks, flags, ECN, and the fields that are only carried."""
    yield from exponents(values)
    yield from digests(values)
    yield from checks(values)
    yield from flags(values)
    yield from congestion(values)
    yield from carried(values)
    yield from packed_words(values)


def exponents(values: int) -> Iterator[Case]:
    """A slot keeps the largest next_exponent."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    for order in permutations((3, 200, 7)):
        yield Case(
            f"exponent/maximum-{'-'.join(map(str, order))}",
            "The result carries the largest next_exponent of all contributions.",
            values,
            them.state,
            (
                them.sends(0, 4, ones, next_exponent=order[0]),
                them.sends(1, 4, ones, next_exponent=order[1]),
                them.sends(2, 4, ones, next_exponent=order[2]).gives(
                    *them.results(4, threes, next_exponent=200)
                ),
                them.sends(1, 4, ones, next_exponent=255).gives(
                    them.replay(1, 4, threes, next_exponent=200)
                ),
            ),
            tally(them, contributions=3, results=1, replays=1),
        )
    yield Case(
        "exponent/round-without-values",
        "Exponents are agreed without values; the result has none.",
        values,
        them.state,
        (
            them.sends(0, 2, next_exponent=9),
            them.sends(1, 2, next_exponent=4),
            them.sends(2, 2, next_exponent=11).gives(*them.results(2, next_exponent=11)),
        ),
        tally(them, contributions=3, results=1),
    )
    yield from exponents_forgotten(values)


def exponents_forgotten(values: int) -> Iterator[Case]:
    """A round begins with an exponent of its own."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    yield Case(
        "exponent/new-round-forgets",
        "The maximum begins anew with each round of the slot.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, ones, next_exponent=250) for rank in (0, 1)),
            them.sends(2, 0, ones).gives(*them.results(0, threes, next_exponent=250)),
            *(them.sends(rank, 8, ones, next_exponent=1 + rank) for rank in (0, 1)),
            them.sends(2, 8, ones).gives(*them.results(8, threes, next_exponent=2)),
        ),
        tally(them, contributions=6, results=2),
    )
    yield Case(
        "exponent/repeats-do-not-count",
        "A repeated or an older contribution does not raise the maximum.",
        values,
        them.state,
        (
            them.sends(0, 8, ones, next_exponent=5),
            them.sends(0, 8, ones, next_exponent=99),
            them.sends(1, 0, ones, next_exponent=99),
            them.sends(1, 8, ones, next_exponent=6),
            them.sends(2, 8, ones, next_exponent=4).gives(
                *them.results(8, threes, next_exponent=6)
            ),
        ),
        tally(them, contributions=3, results=1, duplicates=1, stale=1),
    )


def digests(values: int) -> Iterator[Case]:
    """A slot adds the digests up, modulo 2^16."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    for said in ((1, 2, 4), (0, 0, 9), (0x8000, 0x8000, 0x8000), (0xFFFF, 0xFFFF, 0xFFFE)):
        whole = sum(said) % (1 << 16)
        yield Case(
            f"digest/sum-{'-'.join(f'{one:#06x}' for one in said)}",
            "The result carries the sum of all contributions' digests, and so do its replays.",
            values,
            them.state,
            (
                them.sends(0, 4, ones, digest=said[0]),
                them.sends(1, 4, ones, digest=said[1]),
                them.sends(2, 4, ones, digest=said[2]).gives(
                    *them.results(4, threes, digest=whole)
                ),
                them.sends(1, 4, ones, digest=said[1]).gives(
                    them.replay(1, 4, threes, digest=whole)
                ),
            ),
            tally(them, contributions=3, results=1, replays=1),
        )
    yield Case(
        "digest/round-without-values",
        "Digests are added where there are no values, too.",
        values,
        them.state,
        (
            them.sends(0, 2, digest=0x0102),
            them.sends(1, 2, digest=0x1020),
            them.sends(2, 2, digest=0x0304).gives(*them.results(2, digest=0x1426)),
        ),
        tally(them, contributions=3, results=1),
    )
    yield from digests_forgotten(values)


def digests_forgotten(values: int) -> Iterator[Case]:
    """A round begins with a digest of its own."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    yield Case(
        "digest/new-round-forgets",
        "The sum begins anew with each round of the slot.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, ones, digest=0x1111) for rank in (0, 1)),
            them.sends(2, 0, ones, digest=0x1111).gives(*them.results(0, threes, digest=0x3333)),
            *(them.sends(rank, 8, ones, digest=1) for rank in (0, 1)),
            them.sends(2, 8, ones, digest=1).gives(*them.results(8, threes, digest=3)),
        ),
        tally(them, contributions=6, results=2),
    )
    yield Case(
        "digest/repeats-do-not-count",
        "A repeated or an older contribution adds nothing to the digest.",
        values,
        them.state,
        (
            them.sends(0, 8, ones, digest=5),
            them.sends(0, 8, ones, digest=5),
            them.sends(1, 0, ones, digest=99),
            them.sends(1, 8, ones, digest=6),
            them.sends(2, 8, ones, digest=7).gives(*them.results(8, threes, digest=18)),
            them.sends(2, 8, ones, digest=1000).gives(them.replay(2, 8, threes, digest=18)),
        ),
        tally(them, contributions=3, results=1, replays=1, duplicates=1, stale=1),
    )
    one = team(values, 1)
    yield Case(
        "digest/one-worker",
        "The sum of one is its own.",
        values,
        one.state,
        (one.sends(0, 0, ones, digest=0xABCD).gives(*one.results(0, ones, digest=0xABCD)),),
        tally(one, contributions=1, results=1),
    )


def checks(values: int) -> Iterator[Case]:
    """A slot adds the checks up, modulo 2^32, with the values and never without them."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    for said in ((1, 2, 4), (0x8000_0000, 0x8000_0000, 7), (0xFFFF_FFFF, 0xFFFF_FFFF, 0x1_0001)):
        whole = sum(said) % (1 << 32)
        yield Case(
            f"check/sum-{'-'.join(f'{one:#010x}' for one in said)}",
            "The result carries the sum of all contributions' checks, and so do its replays.",
            values,
            them.state,
            (
                them.sends(0, 4, ones, check=said[0]),
                them.sends(1, 4, ones, check=said[1]),
                them.sends(2, 4, ones, check=said[2]).gives(*them.results(4, threes, check=whole)),
                them.sends(1, 4, ones, check=said[1]).gives(them.replay(1, 4, threes, check=whole)),
            ),
            tally(them, contributions=3, results=1, replays=1),
        )
    yield Case(
        "check/round-without-values",
        "Checks are added where there are no values, too.",
        values,
        them.state,
        (
            them.sends(0, 2, check=0x0102_0304),
            them.sends(1, 2, check=0x1020_3040),
            them.sends(2, 2, check=0x0304_0506).gives(*them.results(2, check=0x1426_384A)),
        ),
        tally(them, contributions=3, results=1),
    )
    yield from checks_forgotten(values)


def checks_forgotten(values: int) -> Iterator[Case]:
    """A round begins with a check of its own."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    yield Case(
        "check/new-round-forgets",
        "The sum begins anew with each round of the slot.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, ones, check=0x1111_1111) for rank in (0, 1)),
            them.sends(2, 0, ones, check=0x1111_1111).gives(
                *them.results(0, threes, check=0x3333_3333)
            ),
            *(them.sends(rank, 8, ones, check=1) for rank in (0, 1)),
            them.sends(2, 8, ones, check=1).gives(*them.results(8, threes, check=3)),
        ),
        tally(them, contributions=6, results=2),
    )
    yield Case(
        "check/repeats-do-not-count",
        "A repeated or an older contribution adds nothing to the check.",
        values,
        them.state,
        (
            them.sends(0, 8, ones, check=5),
            them.sends(0, 8, ones, check=5),
            them.sends(1, 0, ones, check=99),
            them.sends(1, 8, ones, check=6),
            them.sends(2, 8, ones, check=7).gives(*them.results(8, threes, check=18)),
            them.sends(2, 8, ones, check=1000).gives(them.replay(2, 8, threes, check=18)),
        ),
        tally(them, contributions=3, results=1, replays=1, duplicates=1, stale=1),
    )


def flags(values: int) -> Iterator[Case]:
    """Three flags are gathered; the others end with their packet."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    for flag in STICKY:
        for rank in them.ranks:
            sent = [flag if other == rank else 0 for other in them.ranks]
            yield Case(
                f"flag/{flag.name}-from-{rank}",
                f"{flag.name} of any contribution is in the result, and in its replays.",
                values,
                them.state,
                (
                    them.sends(0, 0, ones, flags=sent[0]),
                    them.sends(1, 0, ones, flags=sent[1]),
                    them.sends(2, 0, ones, flags=sent[2]).gives(
                        *them.results(0, threes, flags=flag)
                    ),
                    them.sends(1, 0, ones).gives(them.replay(1, 0, threes, flags=flag)),
                ),
                tally(them, contributions=3, results=1, replays=1),
            )
    for passing in PASSING:
        yield Case(
            f"flag/{int(passing):#04x}-ends",
            "Flags that are not the slot's to gather end at the switch.",
            values,
            them.state,
            (
                them.sends(0, 0, ones, flags=passing),
                them.sends(1, 0, ones, flags=passing),
                them.sends(2, 0, ones, flags=passing).gives(*them.results(0, threes)),
                them.sends(0, 0, ones, flags=passing).gives(them.replay(0, 0, threes)),
            ),
            tally(them, contributions=3, results=1, replays=1),
        )
    yield from flags_gathered(values)


def flags_gathered(values: int) -> Iterator[Case]:
    """Until the next round."""
    them = team(values)
    ones, threes = them.ones(), [3] * values
    gathered = Flag.OVERFLOW | Flag.NON_FINITE
    yield Case(
        "flag/gathered",
        "Flags of different contributions add up; those of repeats and of old packets do not.",
        values,
        them.state,
        (
            them.sends(0, 8, ones, flags=Flag.OVERFLOW | Flag.RESEND),
            them.sends(0, 8, ones, flags=Flag.ECN),
            them.sends(1, 0, ones, flags=Flag.ECN),
            them.sends(1, 8, ones, flags=Flag.NON_FINITE),
            them.sends(2, 8, ones).gives(*them.results(8, threes, flags=gathered)),
            them.sends(2, 8, ones, flags=Flag.ECN).gives(them.replay(2, 8, threes, flags=gathered)),
        ),
        tally(them, contributions=3, results=1, duplicates=1, stale=1, replays=1),
    )
    yield Case(
        "flag/new-round-forgets",
        "A new round of the slot begins without flags.",
        values,
        them.state,
        (
            *(them.sends(rank, 0, ones, flags=0x7F) for rank in (0, 1)),
            them.sends(2, 0, ones).gives(*them.results(0, threes, flags=0x1C)),
            *(them.sends(rank, 8, ones) for rank in (0, 1)),
            them.sends(2, 8, ones).gives(*them.results(8, threes)),
        ),
        tally(them, contributions=6, results=2),
    )


def with_tos(them: Team, rank: int, seq: int, tos: int) -> Arrival:
    """A contribution whose IP header carries these DSCP and ECN bits."""
    frame = replace(them.frame(rank, seq, them.ones()), tos=tos)
    return Arrival(them.job.workers[rank].port, frame.build())


def congestion(values: int) -> Iterator[Case]:
    """A mark in the IP header of a contribution becomes the result's ECN flag."""
    them = team(values, 2)
    twos = [2] * values
    for tos in (0x00, 0x01, 0x02, 0xB9):
        yield Case(
            f"ecn/not-marked-{tos:#04x}",
            "Only CE is a mark; the result travels with the completing packet's DSCP and ECN.",
            values,
            them.state,
            (
                with_tos(them, 0, 0, tos),
                with_tos(them, 1, 0, tos).gives(*them.results(0, twos, tos=tos)),
            ),
            tally(them, contributions=2, results=1),
        )
    for first, last in ((CE, 2), (2, CE), (0xB8 | CE, CE)):
        yield Case(
            f"ecn/marked-on-the-way-{first:#04x}-{last:#04x}",
            "Congestion that any contribution met is told to all.",
            values,
            them.state,
            (
                with_tos(them, 0, 0, first),
                with_tos(them, 1, 0, last).gives(*them.results(0, twos, tos=last, flags=Flag.ECN)),
                them.sends(0, 0, twos).gives(them.replay(0, 0, twos, flags=Flag.ECN)),
            ),
            tally(them, contributions=2, results=1, replays=1),
        )


def packed_words(values: int) -> Iterator[Case]:
    """Words that hold several values are words like others: their sums are those of the columns."""
    for value_type, workers in (
        *((ValueType.FLOAT32_IN_16, 3), (ValueType.FLOAT32_IN_16, MAX_WORKERS)),
        *((ValueType.BFLOAT16_IN_8, 3), (ValueType.BFLOAT16_IN_8, 16)),
    ):
        them, bits = team(values, workers), value_type.bits
        most = column_limit(bits, workers)
        drawn = np.random.default_rng(bits * workers)
        parts = drawn.integers(-most, most + 1, (workers, values * value_type.per_word))
        # Of some columns all are at their limit, of neighbours with both signs.
        parts[:, ::5], parts[:, 1::5] = -most, most
        words = [packed.pack(part, bits).tolist() for part in parts]
        sums = packed.pack(parts.sum(axis=0), bits).tolist()
        said = {"value_type": int(value_type)}
        yield Case(
            f"packed/{bits}-bits-{workers}-workers",
            "The sum of words is the word of the columns' sums, at their limits, too.",
            values,
            them.state,
            (
                *(them.sends(rank, 0, words[rank], **said) for rank in range(workers - 1)),
                them.sends(workers - 1, 0, words[-1], **said).gives(*them.results(0, sums, **said)),
            ),
            tally(them, contributions=workers, results=1),
        )


def carried(values: int) -> Iterator[Case]:
    """Fields that a switch in mode `pool` only hands on."""
    them = team(values, 2)
    ones = them.ones()
    carried_fields: tuple[dict[str, int], ...] = (
        {"exponent": 130},
        {"shape": 9},
        {"level": 5},
        *({"value_type": int(value_type)} for value_type in ValueType),
        {"value_type": 15},
    )
    for fields in carried_fields:
        ((name, value),) = fields.items()
        yield Case(
            f"carried/{name}-{int(value)}",
            f"{name} of the completing packet is in the result as it is.",
            values,
            them.state,
            (
                them.sends(0, 0, ones),
                them.sends(1, 0, ones, **fields).gives(*them.results(0, [2] * values, **fields)),
            ),
            tally(them, contributions=2, results=1),
        )
    yield Case(
        "carried/contributors-are-the-slot's",
        "Nobody is counted because a packet says so: the bitmap is the slot's.",
        values,
        them.state,
        (
            them.sends(0, 0, ones, contributors=0xFFFF_FFFF),
            them.sends(1, 0, ones, contributors=0).gives(*them.results(0, [2] * values)),
        ),
        tally(them, contributions=2, results=1),
    )
    wide = team(values, 2, epoch=0x0001_0002)
    yield Case(
        "carried/after-a-refusal",
        "A refused packet leaves nothing behind in the slot.",
        values,
        wide.state,
        (
            wide.sends(0, 0, ones, kind=Kind.RESULT, flags=Flag.OVERFLOW, next_exponent=255),
            wide.sends(0, 0, ones),
            ItemChange(),
            wide.sends(1, 0, ones, next_exponent=7).gives(
                *wide.results(0, total(ones, ones), next_exponent=7)
            ),
        ),
        tally(wide, contributions=2, results=1, drops={DropReason.MEMBER: 1}),
    )
