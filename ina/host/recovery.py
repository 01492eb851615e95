"""Who has which results when the data path has stopped, and what is left to sum. Pure functions.

A lane is stop-and-wait, so two ranks differ in it by one result at most: nobody gets the result of
s + W before all have sent it, which nobody does before it has the result of s. Each rank keeps its
lanes' newest results, so whatever one rank has and another lacks can be handed on with its exact
bits. Then all ranks have the same chunks done. The inputs of the others are whole (a result is
written only when it is accepted, also in place), and the ranks can sum them by other means: no
chunk is lost, none counts twice.

While a job changes from one mapping to another, ranks have lanes of both, and that holds in each. A
rank that has not heard of the newer one has no result there, and so has nobody; one that has let go
of the older one has all its results, as all have: it was told so.

The steps, each rank for itself but with the same plan:

1. ``frozen = session.freeze()``; gather ``frozen.export`` of all ranks; ``plan(exports)``.
2. For each transfer: its supplier sends ``frozen.lane_data(transfer)``; its receivers
   ``frozen.put(transfer, data)``.
3. Of a scatter the owner alone gets the sum; where it lacks that, nobody has it. For each entry of
   ``plan.again``: add up ``frozen.own_part(entry)`` of all ranks; its receivers
   ``frozen.put_sum(entry, words)``.
4. For each entry of ``plan.sums``, in order: do with its chunks what it says (``frozen.inputs`` to
   ``frozen.outputs``; floats by :class:`ina.host.word_sum.WordSum`, int32 as they are, with
   :func:`average` where it asks for it, and bytes are moved); then ``frozen.complete`` where this
   rank has it pending.
5. Operations of this rank beyond ``plan.submitted`` have not been submitted by all ranks, and no
   chunk of them is done. Sum them whole, in order; other ranks come to them when they submit them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ina.host.arrays import Array
from ina.host.chunks import ChunkMap, Ranges
from ina.host.errors import RecoveryError
from ina.protocol.collective import Collective, CollectiveKind

_SEQ_MODULUS = 1 << 32


@dataclass(frozen=True)
class Lane:
    """The newest result that a rank has accepted on one lane."""

    seq: int
    operation: int
    chunk: int
    exponent_only: bool  # its round made no sums: operation and chunk are those it prepared
    has_values: bool = field(default=True, compare=False)  # False: it was told that they are made
    non_finite: bool = field(default=False, compare=False)  # they are NaN


@dataclass(frozen=True)
class MappedLanes:
    """A rank's lanes in one mapping of the job."""

    epoch: int  # the mapping's
    lanes: tuple[Lane | None, ...]  # None: no result yet


@dataclass(frozen=True)
class Pending:
    """An operation that is not done on a rank."""

    operation: int  # counts from 1 in the order of submission, the same on all ranks
    what: Collective
    undone: Ranges  # chunks


@dataclass(frozen=True)
class Export:
    """What one rank tells the others. Picklable, a few KiB."""

    job: int
    epoch: int  # the job's, not that of a mapping
    rank: int
    world_size: int
    chunk_words: int  # a packet's: of values that travel packed a chunk has two or four times them
    submitted: int  # operations so far, done or not
    mappings: tuple[MappedLanes, ...]  # one, or while it changes the older one and the newer
    pending: tuple[Pending, ...]  # in the order of submission


@dataclass(frozen=True)
class Transfer:
    """A lane's newest result on its way from one rank to those that lack it."""

    epoch: int  # of the mapping that the lane is of
    lane: int
    seq: int
    operation: int
    chunk: int
    supplier: int | None  # None: no rank that lacks it gets values
    receivers: tuple[int, ...]


@dataclass(frozen=True)
class SumAgain:
    """A lane's newest result of which all ranks still have what they gave, and none has the sum."""

    epoch: int  # as of a Transfer
    lane: int
    seq: int
    operation: int
    chunk: int
    owner: int  # gets the sum
    receivers: tuple[int, ...]  # lack it, or to know that it is made
    non_finite: bool  # it is NaN


@dataclass(frozen=True)
class Sum:
    """What is left of one operation after the transfers, the same on all ranks; may be nothing."""

    operation: int
    what: Collective
    undone: Ranges


@dataclass(frozen=True)
class Plan:
    """The same on every rank."""

    transfers: tuple[Transfer, ...]
    sums: tuple[Sum, ...]  # operations that all ranks have submitted and some have not done
    submitted: int  # operations that all ranks have submitted
    again: tuple[SumAgain, ...] = ()


def plan(exports: Sequence[Export]) -> Plan:
    """Compute from all ranks' exports, in any order, how each rank gets to the undisturbed result.

    Raises RecoveryError when they do not fit together: then no sum can be promised.
    """
    by_rank = _check(exports)
    epochs = {mapping.epoch for export in by_rank for mapping in export.mappings}
    lacking = [one for epoch in sorted(epochs) for one in _lacking(epoch, by_rank)]
    submitted = min(export.submitted for export in by_rank)
    operations = sorted({p.operation for export in by_rank for p in export.pending})
    for late in (p for export in by_rank for p in export.pending if p.operation > submitted):
        if late.undone != _map(late.what, by_rank).all:
            raise RecoveryError(
                f"operation {late.operation} is done in part, but not all ranks submitted it"
            )
    return Plan(
        tuple(one for one in lacking if isinstance(one, Transfer)),
        tuple(_sum(op, by_rank, lacking) for op in operations if op <= submitted),
        submitted,
        tuple(one for one in lacking if isinstance(one, SumAgain)),
    )


def average(sums: Array, world_size: int) -> Array:
    """Return sums divided by the number of ranks, rounded as the data path does it."""
    if sums.dtype == np.int32:
        return np.trunc(sums / world_size).astype(np.int32)
    mean: Array = (sums.astype(np.float32) * np.float32(1 / world_size)).astype(sums.dtype)
    return mean


def _check(exports: Sequence[Export]) -> list[Export]:
    by_rank = sorted(exports, key=lambda export: export.rank)
    if not by_rank or [export.rank for export in by_rank] != list(range(by_rank[0].world_size)):
        ranks = [export.rank for export in by_rank]
        raise RecoveryError(f"each rank's export is needed once, got those of {ranks}")
    places = {(e.job, e.epoch, e.world_size, e.chunk_words) for e in by_rank}
    if len(places) != 1:
        raise RecoveryError(f"the exports are of different jobs or incarnations: {sorted(places)}")
    return by_rank


def _map(what: Collective, by_rank: Sequence[Export]) -> ChunkMap:
    return ChunkMap(what, by_rank[0].world_size, by_rank[0].chunk_words)


def _lacking(epoch: int, by_rank: Sequence[Export]) -> Iterator[Transfer | SumAgain]:
    """What the lanes of one mapping need."""
    known: dict[int, tuple[Lane | None, ...]] = {
        export.rank: mapping.lanes
        for export in by_rank
        for mapping in export.mappings
        if mapping.epoch == epoch
    }
    windows = {len(lanes) for lanes in known.values()}
    if len(windows) != 1:
        raise RecoveryError(f"the mapping of epoch {epoch} has {sorted(windows)} lanes")
    (window,) = windows
    for export in by_rank:
        if export.rank not in known and not _has_let_go(export, epoch):
            known[export.rank] = (None,) * window
    for index in range(window):
        lanes = {rank: lanes[index] for rank, lanes in sorted(known.items())}
        if found := _newest(index, lanes, window):
            newest, behind = found
            yield _brought(epoch, index, newest, lanes, behind, by_rank)


def _has_let_go(export: Export, epoch: int) -> bool:
    """Whether a rank without this mapping has only newer ones."""
    return all(_is_newer(mapping.epoch, epoch) for mapping in export.mappings)


def _is_newer(number: int, other: int) -> bool:
    return 0 < (number - other) % _SEQ_MODULUS < _SEQ_MODULUS // 2  # serial number arithmetic


def _newest(
    index: int, lanes: Mapping[int, Lane | None], window: int
) -> tuple[Lane, tuple[int, ...]] | None:
    """One lane's newest result, and the ranks that lack it; `lanes` by rank. None: none does, or
    it is nothing that they lack."""
    accepted = [lane for lane in lanes.values() if lane is not None]
    if not accepted:
        return None
    newest = accepted[0]
    for other in accepted[1:]:
        if _is_newer(other.seq, newest.seq):
            newest = other
    behind = []
    for rank, lane in lanes.items():
        if lane == newest:
            continue
        if lane is not None and (newest.seq - lane.seq) % _SEQ_MODULUS != window:
            raise RecoveryError(
                f"lane {index}: rank {rank} has {lane}, another rank has {newest}; did the ranks "
                "reduce different things?"
            )
        behind.append(rank)
    return None if not behind or newest.exponent_only else (newest, tuple(behind))


def _brought(
    epoch: int,
    index: int,
    newest: Lane,
    lanes: Mapping[int, Lane | None],
    behind: tuple[int, ...],
    by_rank: Sequence[Export],
) -> Transfer | SumAgain:
    """How one lane's newest result comes to the ranks that lack it."""
    where = epoch, index, newest.seq, newest.operation, newest.chunk
    have = [rank for rank, lane in lanes.items() if lane == newest and lane.has_values]
    if have:
        return Transfer(*where, have[0], behind)
    pending = (p for rank in behind for p in by_rank[rank].pending)
    what = next((p.what for p in pending if p.operation == newest.operation), None)
    if what is None:
        raise RecoveryError(f"lane {index}: no rank that lacks {newest} has its operation pending")
    owner = _map(what, by_rank).owner(newest.chunk)
    wanting = [rank for rank in behind if what.gets_part(owner, rank)]
    if not wanting:
        return Transfer(*where, None, behind)
    if wanting != [owner] or what.kind not in _SCATTERS:
        raise RecoveryError(f"lane {index}: no rank has the values of {newest}")
    return SumAgain(*where, owner, behind, newest.non_finite)


_SCATTERS = (CollectiveKind.REDUCE, CollectiveKind.REDUCE_SCATTER)


def _sum(operation: int, by_rank: Sequence[Export], lacking: Sequence[Transfer | SumAgain]) -> Sum:
    """What is left of an operation that all ranks have submitted, checked to be the same on all."""
    arriving: dict[int, set[int]] = {export.rank: set() for export in by_rank}
    for transfer in lacking:
        if transfer.operation == operation:
            for rank in transfer.receivers:
                arriving[rank].add(transfer.chunk)
    shapes, left = set(), set()
    for export in by_rank:
        found = next((p for p in export.pending if p.operation == operation), None)
        undone = found.undone if found else ()
        left.add(_without(undone, arriving[export.rank], f"operation {operation}"))
        if found:
            shapes.add(found.what)
    if len(shapes) != 1:
        raise RecoveryError(
            f"operation {operation}: the ranks disagree on elements, type and reduction: "
            f"{', '.join(sorted(map(str, shapes)))}"
        )
    if len(left) != 1:
        raise RecoveryError(f"operation {operation}: the ranks lack different chunks")
    return Sum(operation, shapes.pop(), left.pop())


def _without(ranges: Ranges, chunks: set[int], what: str) -> Ranges:
    """Return the ranges less some chunks, all of which must be in them."""
    left = []
    missing = set(chunks)
    for begin, end in ranges:
        inside = sorted(chunk for chunk in missing if begin <= chunk < end)
        missing.difference_update(inside)
        for chunk in inside:
            if begin < chunk:
                left.append((begin, chunk))
            begin = chunk + 1
        if begin < end:
            left.append((begin, end))
    if missing:
        raise RecoveryError(f"{what}: chunks {sorted(missing)} would arrive where they are done")
    return tuple(left)
