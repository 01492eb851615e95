"""Which copies lose their values on the way to a receiver: those that nobody there wants.

In rounds of another shape than SUM the lower bits of ``path`` say whose chunk it is. A receiver is
*on the owner's way* if the whole way from the root to it is the beginning of that path: an index
that is right at one level alone leads to others, too. A switch asks no more of a copy than that and
its shape; what of it loses its values the row of the receiver says, a bit for each shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.protocol.spec import Shape


@dataclass(frozen=True)
class Strips:
    """Of one receiver. ``on``, ``off``: bit s is set where copies of shape s lose their values on
    the owner's way, and off it. Shapes beyond 3 have no bit."""

    way: int = 0
    """Of the receiver, as owners' paths begin: 12 bits."""
    way_mask: int = 0
    """The bits of those that ``way`` has."""
    on: int = 0
    off: int = 0

    def take(self, path: int, shape: int) -> bool:
        """Whether a copy with these fields loses its values."""
        is_on = path & self.way_mask == self.way
        return bool((self.on if is_on else self.off) >> shape & 1)


KEEPS = Strips()
"""Of a receiver that gets all copies as they are."""

_SCATTER, _GATHER = 1 << Shape.SCATTER, 1 << Shape.GATHER


def to_worker(way: int, way_mask: int) -> Strips:
    """Of a worker: the owner of a chunk gives it in a GATHER, and alone gets it in a SCATTER."""
    return Strips(way, way_mask, on=_GATHER, off=_SCATTER)


def to_switch(way: int, way_mask: int) -> Strips:
    """Of a node below: in a GATHER others below it than the owner may want the values."""
    return Strips(way, way_mask, off=_SCATTER)


def to_parent(way: int, way_mask: int) -> Strips:
    """Of the parent of a node that ``way`` leads to: of a GATHER, without the owner, a sum is 0."""
    return Strips(way, way_mask, off=_GATHER)
