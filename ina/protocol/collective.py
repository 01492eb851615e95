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
    op: int = Reduction.SUM
    kind: int = CollectiveKind.ALL_REDUCE
    root: int = 0
    """The rank that alone gets the result; 0 of kinds without one."""
    rounding: int = Rounding.NEAREST

    def gets(self, rank: int) -> bool:
        """Whether this rank gets the values of the result."""
        return self.kind == CollectiveKind.ALL_REDUCE or rank == self.root

    def __str__(self) -> str:
        """``sum of float32[1000]``, of a kind with a root ``sum of float32[1000] to rank 2``."""
        op = _LABELS.get(self.op, f"reduction {self.op}")
        name = _TYPES.get(self.value_type, f"type {self.value_type} ")
        to = "" if self.kind == CollectiveKind.ALL_REDUCE else f" to rank {self.root}"
        how = ", rounded stochastically" if self.rounding == Rounding.STOCHASTIC else ""
        return f"{op} of {name}[{self.elems}]{to}{how}"


Submitted = tuple[int, tuple[int, ...]]
"""As the native side tells of one: its number in the order of submission, and its fields."""

_TYPES = {value.value: value.name.lower() for value in ValueType}
