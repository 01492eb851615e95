"""The collectives that are measured: nccl-tests' sizes and factors, and what each has on a link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ina.p4.builds import frame_bytes
from ina.protocol.spec import VALUE_BYTES

Flow = Literal["sum", "scatter", "gather"]
"""Who gives values, and who gets them: all of them all; all but the owner to the owner; the owner
to all but itself."""
ROOT = 0
"""Of collectives that have one."""


@dataclass(frozen=True)
class Kind:
    """A collective."""

    flow: Flow
    has_parts: bool = False
    """Each rank owns one; the size is that of all of them, the count that of one."""
    has_root: bool = False
    is_summed: bool = False

    def factor(self, workers: int) -> float:
        """busbw / algbw, as nccl-tests have it, whatever the algorithm."""
        if self.has_root:
            return 1.0
        return (1 if self.has_parts else 2) * (workers - 1) / workers


KINDS = {
    "all_reduce": Kind("sum", is_summed=True),
    "reduce_scatter": Kind("scatter", has_parts=True, is_summed=True),
    "all_gather": Kind("gather", has_parts=True),
    "broadcast": Kind("gather", has_root=True),
    "reduce": Kind("scatter", has_root=True, is_summed=True),
    "barrier": Kind("sum"),
}
"""By name."""


@dataclass(frozen=True)
class SizedCollective:
    """One collective on tensors of one size."""

    name: str
    count: int
    """Elements of the tensor, or of each rank's part; 0: of a barrier."""
    elem_bytes: int
    workers: int

    @property
    def kind(self) -> Kind:
        """What is so at any size."""
        return KINDS[self.name]

    @property
    def size_bytes(self) -> int:
        """nccl-tests': of the largest tensor of a rank."""
        return self.count * self.elem_bytes * (self.workers if self.kind.has_parts else 1)

    @property
    def words(self) -> int:
        """On the wire, of the tensor or of each part: a word a value where they are summed."""
        if self.kind.is_summed:
            return self.count
        return math.ceil(self.count * self.elem_bytes / VALUE_BYTES)


@dataclass(frozen=True)
class LinkBytes:
    """Of Ethernet frames on a rank's link, as :mod:`ina.bench.limits` counts them."""

    sent: float
    received: float

    @property
    def larger(self) -> float:
        """Of the direction that takes longer."""
        return max(self.sent, self.received)


def case_of(name: str, size_bytes: int, elem_bytes: int, workers: int) -> SizedCollective:
    """The largest that has no more than so many bytes, of one element a part at least."""
    if name == "barrier":
        return SizedCollective(name, 0, elem_bytes, workers)
    parts = workers if KINDS[name].has_parts else 1
    return SizedCollective(name, max(1, size_bytes // elem_bytes // parts), elem_bytes, workers)


def is_round_trip(case: SizedCollective, values: int) -> bool:
    """Whether all ranks do nothing but send one packet, and get one of the same size."""
    return case.kind.flow == "sum" and case.words <= values


def link_bytes(case: SizedCollective, values: int, rank: int, *, multicast: bool) -> LinkBytes:
    """What the network's way has on a rank's link, with ``values`` words a packet.

    Every rank has a packet of each chunk each way, without values or full of them: who has fewer
    fills it up. Not counted: packets by
    which floats agree on exponents before their first values, and what is sent again.
    ``multicast``: results come to all ranks alike, so with values if one of them wants these.
    """
    ranks, words = case.workers, case.words
    if case.name == "all_gather" and words * ranks <= values:  # all in one packet, as a sum
        one = frame_bytes(values)
        return LinkBytes(one, one)
    parts = ranks if case.kind.has_parts else 1
    full = math.ceil(words / values)
    heads = frame_bytes(0) * parts * max(1, full)
    whole = full * values * VALUE_BYTES * parts
    own = whole // ranks if case.kind.has_parts else whole if rank == ROOT else 0
    if case.kind.flow == "sum":
        return LinkBytes(heads + whole, heads + whole)
    gives, gets = (own, whole - own) if case.kind.flow == "gather" else (whole - own, own)
    return LinkBytes(heads + gives, heads + (whole if multicast else gets))
