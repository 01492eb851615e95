"""What all ranks do together with a tensor: one value, the same on each of them.

It goes from the caller down to the digest on the wire, by which ranks that differ find out. In C++
it is ``native/host/core/collective.hpp``, in messages what :mod:`ina.rpc.operations` makes of it.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from ina.protocol.spec import ValueType


class CollectiveKind(enum.IntEnum):
    """Who gives values, and who gets them."""

    ALL_REDUCE = 0
    """All, and all."""
    REDUCE = 1
    """All, and the root."""
    REDUCE_SCATTER = 2
    """All; and each rank its part of the sum."""
    ALL_GATHER = 3
    """All, a part each; and all, of each."""
    BROADCAST = 4
    """The root, and all others."""
    BARRIER = 5
    """Nobody, and nobody."""

    @property
    def has_parts(self) -> bool:
        """Whether each rank has, or gets, a part of its own."""
        return self in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)

    @property
    def has_root(self) -> bool:
        """Whether one rank alone gives, or gets."""
        return self in (CollectiveKind.BROADCAST, CollectiveKind.REDUCE)


class Reduction(enum.IntEnum):
    """What becomes of the values of all who give some."""

    SUM = 0
    AVERAGE = 1


class Rounding(enum.IntEnum):
    """How values become integers of few bits; those of whole words are rounded to the nearest."""

    NEAREST = 0
    """Half even."""
    STOCHASTIC = 1
    """Up as often as the value is near the upper integer."""


REDUCTIONS = {"sum": Reduction.SUM, "avg": Reduction.AVERAGE}
"""By what users write."""
_LABELS: dict[int, str] = {op: label for label, op in REDUCTIONS.items()}


class Collective(NamedTuple):
    """Two are the same where ranks may submit them together. The native side takes it as it is."""

    value_type: int
    """A :class:`~ina.protocol.spec.ValueType`. What another rank says may be a number that this
    process has no name for, as may be the next two.
    """
    elems: int
    """Of kinds with parts: of each rank's. What is moved has bytes."""
    op: int = Reduction.SUM
    kind: int = CollectiveKind.ALL_REDUCE
    root: int = 0
    """The rank that alone gives, or gets; 0 of kinds without one."""
    rounding: int = Rounding.NEAREST

    @property
    def is_moved(self) -> bool:
        """Whether it moves bytes, and sums nothing."""
        return self.kind in (CollectiveKind.ALL_GATHER, CollectiveKind.BROADCAST)

    def gets(self, rank: int) -> bool:
        """Whether this rank gets some of the result."""
        if self.kind == CollectiveKind.BARRIER:
            return False
        if self.kind == CollectiveKind.BROADCAST:
            return rank != self.root
        return self.kind != CollectiveKind.REDUCE or rank == self.root

    def has_values(self, part: int, rank: int) -> bool:
        """Whether this rank has values of a part; of what has no parts, that is part 0."""
        match self.kind:
            case CollectiveKind.ALL_GATHER:
                return part == rank
            case CollectiveKind.BROADCAST:
                return rank == self.root
        return True

    def gets_part(self, part: int, rank: int) -> bool:
        """Whether this rank gets those of the result."""
        if self.kind == CollectiveKind.REDUCE_SCATTER:
            return part == rank
        return self.gets(rank)

    def __str__(self) -> str:
        """``sum of float32[1000]``, ``all_gather of bytes[40]``, ``... to rank 2``."""
        if self.kind == CollectiveKind.BARRIER:
            return "barrier"
        name = _TYPES.get(self.value_type, f"type {self.value_type} ")
        what = f"{name}[{self.elems}]"
        op = _LABELS.get(self.op, f"reduction {self.op}")
        how = ", rounded stochastically" if self.rounding == Rounding.STOCHASTIC else ""
        match self.kind:
            case CollectiveKind.ALL_REDUCE:
                return f"{op} of {what}{how}"
            case CollectiveKind.REDUCE:
                return f"{op} of {what} to rank {self.root}{how}"
            case CollectiveKind.REDUCE_SCATTER:
                return f"{op} of {what} to each rank{how}"
            case CollectiveKind.ALL_GATHER:
                return f"all_gather of {what}"
            case CollectiveKind.BROADCAST:
                return f"broadcast of {what} from rank {self.root}"
        return f"collective {self.kind} of {what}"


Submitted = tuple[int, tuple[int, ...]]
"""As the native side tells of one: its number in the order of submission, and its fields."""

_TYPES = {value.value: value.name.lower() for value in ValueType}
