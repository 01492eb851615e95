"""Rounds in which not all give values, or not all get them: shapes other than SUM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ina.protocol.spec import OWNER_BITS, PATH_BITS, UDP_PORT, Flag, Shape, path_of
from ina.protocol.strips import Strips
from ina.testing.case import Arrival, Case
from ina.testing.cases.actors import Team, tally, team, total
from ina.testing.cases.levels import Inner, inner
from ina.testing.frames import PortFrame

_OF_SCATTER, _OF_GATHER = 0b0010, 0b0100
_ALL_SHAPES = 0b1111

_Some = TypeVar("_Some", bound=Team)


def owned(shape: int, way: Sequence[int], owner: Sequence[int], **fields: Any) -> dict[str, Any]:
    """What a packet says of whose it is, by the way to its worker, and whose chunk."""
    path = path_of(way) | path_of(owner) >> PATH_BITS - OWNER_BITS
    return {"shape": shape, "path": path, **fields}


def row(way: Sequence[int], on: int, off: int) -> Strips:
    """Of a receiver that this way leads to."""
    beginning, mask = path_of(way), path_of([31] * len(way))
    return Strips(beginning >> PATH_BITS - OWNER_BITS, mask >> PATH_BITS - OWNER_BITS, on, off)


def with_rows(them: _Some, above: tuple[int, ...] = (), *, switches: bool = False) -> _Some:
    """The team with rows that say which copies its workers, or switches, get without values."""
    on = 0 if switches else _OF_GATHER
    rows = tuple(row((*above, child), on, _OF_SCATTER) for child in them.ranks)
    return replace(them, job=replace(them.job, strips=rows))


def star(values: int, size: int = 3, **options: Any) -> Team:
    """One switch, all workers."""
    return with_rows(team(values, size, **options))


def below(values: int, way: tuple[int, ...], size: int = 3, **options: Any) -> Inner:
    """A switch with a parent, and workers below it."""
    them = with_rows(inner(values, size, way=way, **options), way)
    parent = replace(them.parent, strips=row(way, 0, _OF_GATHER))
    return replace(them, job=replace(them.job, parent=parent))


def results(
    them: Team, seq: int, sums: Sequence[int], full: Sequence[int], **fields: Any
) -> tuple[PortFrame, ...]:
    """Copies of a result to all, of which these have values."""
    return tuple(them.result(it, seq, sums if it in full else None, **fields) for it in them.ranks)


def cases(values: int) -> Iterator[Case]:
    """All of this topic."""
    for group in (scatters, gathers, beginnings, repeats, numbers, shared, sums_up, roots, downs):
        yield from group(values)


def scatters(values: int) -> Iterator[Case]:
    """All but the owner give, the owner gets."""
    them = star(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    for name, order in (("first", (2, 0, 1)), ("between", (0, 2, 1)), ("last", (1, 0, 2))):
        said = [
            owned(Shape.SCATTER, (it,), (2,), digest=1 << it, next_exponent=9 - it)
            for it in them.ranks
        ]
        last = order[-1]
        whole = results(
            *(them, 4, total(*parts[:2]), [2]),
            **{**said[last], "digest": 7, "next_exponent": 9},
        )
        yield Case(
            f"shapes/scatter-owner-{name}",
            "The owner of a scattered chunk gives nothing, and it alone gets the sum.",
            values,
            them.state,
            tuple(
                them.sends(it, 4, None if it == 2 else parts[it], **said[it]).gives(
                    *(whole if it == last else ())
                )
                for it in order
            ),
            tally(them, contributions=3, results=1),
        )


def gathers(values: int) -> Iterator[Case]:
    """The owner gives, all but the owner get."""
    them = star(values)
    part = them.numbers(3)
    for name, order in (("first", (1, 0, 2)), ("between", (0, 1, 2)), ("last", (2, 0, 1))):
        said = [owned(Shape.GATHER, (it,), (1,), check=1 << it, copy=it) for it in them.ranks]
        last = order[-1]
        whole = results(*(them, 5, part, [0, 2]), **{**said[last], "check": 7})
        yield Case(
            f"shapes/gather-owner-{name}",
            "The owner of a gathered chunk alone gives it, and all others get it.",
            values,
            them.state,
            tuple(
                them.sends(it, 5, part if it == 1 else None, **said[it]).gives(
                    *(whole if it == last else ())
                )
                for it in order
            ),
            tally(them, contributions=3, results=1),
        )


def beginnings(values: int) -> Iterator[Case]:
    """What a slot held before is in no later round."""
    them, alone = star(values, 2), star(values, 1)
    part, before = them.numbers(5), them.numbers(1)
    said = [owned(Shape.GATHER, (it,), (1,)) for it in them.ranks]
    yield Case(
        "shapes/header-alone-begins",
        "A packet without values that begins a round begins it at 0, whatever was there.",
        values,
        them.state,
        (
            them.sends(0, 1, before),
            them.sends(1, 1, before).gives(*them.results(1, total(before, before))),
            them.sends(0, 9, **said[0]),
            them.sends(1, 9, part, **said[1]).gives(*results(them, 9, part, [0], **said[1])),
            them.sends(1, 17, part, **said[1]),
            them.sends(0, 17, **said[0]).gives(*results(them, 17, part, [0], **said[0])),
        ),
        tally(them, contributions=6, results=3),
    )
    nothing = [0] * values
    scattered, gathered = (owned(it, (0,), (0,)) for it in (Shape.SCATTER, Shape.GATHER))
    yield Case(
        "shapes/of-one",
        "A worker that is alone gets what the others give, which is 0, and nothing of its own.",
        values,
        alone.state,
        (
            alone.sends(0, 0, before).gives(*alone.results(0, before)),
            alone.sends(0, 8, **scattered).gives(*alone.results(8, nothing, **scattered)),
            alone.sends(0, 16, part, **gathered).gives(*alone.results(16, **gathered)),
            alone.sends(0, 24, **gathered).gives(*alone.results(24, **gathered)),
        ),
        tally(alone, contributions=4, results=4),
    )


def repeats(values: int) -> Iterator[Case]:
    """Who lacks its result is answered as it wants it."""
    them = star(values)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    for shape, owner in ((Shape.SCATTER, 0), (Shape.GATHER, 2)):
        gives = [it for it in them.ranks if (it == owner) == (shape == Shape.GATHER)]
        gets = [it for it in them.ranks if it not in gives]
        said = [owned(shape, (it,), (owner,)) for it in them.ranks]
        whole = total(*(parts[it] for it in gives))
        sent = [
            them.sends(it, 3, parts[it] if it in gives else None, **said[it]) for it in them.ranks
        ]
        again = [
            them.sends(*(it, 3, parts[it] if it in gives else None), **said[it], copy=1).gives(
                them.replay(it, 3, whole if it in gets else None, **said[it], copy=1)
            )
            for it in (1, 2, 0)
        ]
        newer = [them.sends(it, 11, them.ones()) for it in them.ranks]
        yield Case(
            f"shapes/{shape.name.lower()}-repeated",
            "A repeat of an open round does nothing; of a complete one it brings what its worker"
            " wants; an older one nothing.",
            values,
            them.state,
            (
                *(sent[0], sent[0], sent[1], sent[1]),
                sent[2].gives(*results(them, 3, whole, gets, **said[2])),
                *again,
                newer[0],
                *sent,
                newer[1],
                newer[2].gives(*them.results(11, [3] * values)),
            ),
            tally(them, contributions=6, results=2, duplicates=2, replays=3, stale=3),
        )


def numbers(values: int) -> Iterator[Case]:
    """Shapes without a name, and the one that all packets had before there were others."""
    them = star(values, 2)
    always = Strips(on=_ALL_SHAPES, off=_ALL_SHAPES)
    bare = replace(them, job=replace(them.job, strips=(always, Strips())))
    ones, part = them.ones(), them.numbers(4)
    steps: list[Arrival] = []
    for seq, shape in enumerate((3, 4, 7, 8, 15)):
        steps += (
            bare.sends(1, seq, part, shape=shape),
            bare.sends(0, seq, shape=shape, path=7).gives(
                *results(bare, seq, part, [1] if shape == 3 else [0, 1], shape=shape, path=7)
            ),
        )
    yield Case(
        "shapes/without-a-name",
        "Rounds of any other shape than 0 bring values to all, but for what rows say of 1 to 3.",
        values,
        bare.state,
        tuple(steps),
        tally(bare, contributions=10, results=5),
    )
    yield Case(
        "shapes/sums-as-ever",
        "In a sum a header alone is answered so, and who is on whose way does not matter.",
        values,
        them.state,
        (
            them.sends(0, 0, ones, path=path_of((0,))),
            them.sends(1, 0, ones, path=0xFFFFFF).gives(
                *them.results(0, [2] * values, path=0xFFFFFF)
            ),
            them.sends(0, 1, next_exponent=3),
            them.sends(1, 1, next_exponent=5).gives(*them.results(1, next_exponent=5)),
            them.sends(0, 2, ones),
            them.sends(1, 2).gives(*them.results(2)),
            them.sends(0, 2, ones).gives(them.replay(0, 2, ones)),
        ),
        tally(them, contributions=6, results=3, replays=1),
    )


def shared(values: int) -> Iterator[Case]:
    """Who shares a copy may be the owner, or not."""
    them = with_rows(team(values, 4, ports=(1, 1, 2, 3), listening=(0, 1, 2)))
    part = them.numbers(2)
    said = [owned(Shape.SCATTER, (it,), (1,)) for it in them.ranks]
    whole = [3 * number for number in them.ones()]
    yield Case(
        "shapes/shared-copies-are-whole",
        "A copy that several workers share keeps its values; who has one of its own, and a repeat,"
        " gets what it wants.",
        values,
        them.state,
        (
            *(them.sends(it, 0, None if it == 1 else them.ones(), **said[it]) for it in (0, 1, 2)),
            them.sends(3, 0, them.ones(), **said[3]).gives(
                *(
                    them.copy(worker, at, 0, None if worker == 3 else whole, **said[3])
                    for worker, at in them.job.receivers
                )
            ),
            them.sends(0, 0, part, **said[0]).gives(them.replay(0, 0, **said[0])),
            them.sends(1, 0, **said[1]).gives(them.replay(1, 0, whole, **said[1])),
        ),
        tally(them, contributions=4, results=1, replays=2),
    )


def sums_up(values: int) -> Iterator[Case]:
    """What goes up to a parent has values, if a worker below the switch may have given some."""
    way = (5,)
    them = below(values, way)
    parts = [them.numbers(rank + 1) for rank in them.ranks]
    for name, owner in (("here", (5, 1)), ("elsewhere", (6, 1)), ("on-no-switch", (1,))):
        is_here = owner[0] == 5
        gathered = [owned(Shape.GATHER, (*way, it), owner) for it in them.ranks]
        gives = [1] if is_here else []
        asks = [
            them.sends(it, 2, parts[it] if it in gives else None, **gathered[it])
            for it in them.ranks
        ]
        up = [them.up(2, parts[1] if is_here else None, **gathered[it]) for it in them.ranks]
        yield Case(
            f"shapes/gather-goes-up-owner-{name}",
            "A switch without the owner below it sends the headers of gathered chunks up alone.",
            values,
            them.state,
            (asks[0], asks[1], asks[2].gives(up[2]), asks[1].gives(up[1]), asks[0].gives(up[0])),
            tally(them, contributions=3, results=1, replays=2),
        )
        scattered = [owned(Shape.SCATTER, (*way, it), owner) for it in them.ranks]
        gives = [it for it in them.ranks if not (is_here and it == 1)]
        asks = [
            them.sends(it, 2, parts[it] if it in gives else None, **scattered[it])
            for it in them.ranks
        ]
        whole = total(*(parts[it] for it in gives))
        up = [them.up(2, whole, **scattered[it]) for it in them.ranks]
        yield Case(
            f"shapes/scatter-goes-up-owner-{name}",
            "Sums of scattered chunks go up with values, also in the owner's own packet.",
            values,
            them.state,
            (asks[0], asks[2], asks[1].gives(up[1]), asks[1].gives(up[1]), asks[0].gives(up[0])),
            tally(them, contributions=3, results=1, replays=2),
        )


def roots(values: int) -> Iterator[Case]:
    """Copies to switches."""
    racks = team(values, 3)
    at = tuple(replace(it, udp_port=UDP_PORT) for it in racks.job.workers)
    racks = with_rows(replace(racks, job=replace(racks.job, workers=at)), switches=True)
    parts = [racks.numbers(rank + 1) for rank in racks.ranks]
    for shape, gets in ((Shape.SCATTER, [1]), (Shape.GATHER, [0, 1, 2])):
        said = [owned(shape, (it, 2), (1, 4), level=1) for it in racks.ranks]
        gives = [1] if shape == Shape.GATHER else [0, 1, 2]  # others in its rack do
        whole = total(*(parts[it] for it in gives))
        sent = [
            racks.sends(it, 0, parts[it] if it in gives else None, **said[it]) for it in racks.ranks
        ]
        asked = [racks.replay(it, 0, whole if it in gets else None, **said[it]) for it in (0, 1)]
        yield Case(
            f"shapes/{shape.name.lower()}-to-switches",
            "What is scattered goes to the owner's switch, what is gathered to all of them.",
            values,
            racks.state,
            (
                *(sent[2], sent[1]),
                sent[0].gives(*results(racks, 0, whole, gets, **said[0])),
                *(sent[0].gives(asked[0]), sent[1].gives(asked[1])),
            ),
            tally(racks, contributions=3, results=1, replays=2),
        )


def downs(values: int) -> Iterator[Case]:
    """A result of the parent's: one index that is right does not make a way."""
    way = (5,)
    them = below(values, way)
    sums = them.numbers(7)
    for shape in (Shape.SCATTER, Shape.GATHER):
        steps = []
        for owner in ((5, 1), (6, 1), (5, 30), (1,)):
            is_gather = shape == Shape.GATHER
            hit = owner[1] if owner[0] == 5 and len(owner) == 2 else None
            gets = [it for it in them.ranks if (it == hit) != is_gather]
            whole = them.told(8, values, **owned(shape, (6, 0), owner))
            bare = replace(whole, value_count=0)
            copies = [
                them.handed(
                    it, them.job.workers[it], *((whole, sums) if it in gets else (bare, ()))
                )
                for it in them.ranks
            ]
            steps.append(them.down(whole, sums).gives(*copies))
            for it in (1, 0):
                asked = {**owned(shape, (*way, it), owner), "flags": Flag.REPLAY}
                to_one = replace(whole, **asked)
                one = (to_one, sums) if it in gets else (replace(to_one, value_count=0), ())
                steps.append(
                    them.down(to_one, sums).gives(them.handed(it, them.job.workers[it], *one))
                )
        yield Case(
            f"shapes/{shape.name.lower()}-comes-down",
            "A worker gets its copy of the parent's result with values, or without, by the whole"
            " way to the owner.",
            values,
            them.state,
            tuple(steps),
            tally(them, passed_down=12),
        )
    empty = them.told(8, 0, **owned(Shape.SCATTER, (6, 0), (6, 1)))
    yield Case(
        "shapes/header-alone-comes-down",
        "What comes without values goes on without.",
        values,
        them.state,
        (them.down(empty).gives(*them.handed_to_all(empty)),),
        tally(them, passed_down=1),
    )
