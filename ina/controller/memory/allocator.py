"""Who has which of a switch's slots. How many each should have is a matter of policies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ina.trees.slots import SlotRange


class Allocator(Protocol):
    """Shares out the slots of one switch. Not thread-safe."""

    total: int
    """Slots of the switch."""

    def cost(self, job: str, wanted: int) -> int:
        """How many slots nobody else can have when ``job`` gets ``wanted`` (0: the default).

        Raises :class:`JobRequestError` when the allocator never grants so many.
        """
        ...

    def take(self, job: str, wanted: int) -> SlotRange:
        """Returns the range for ``job``, which wants ``wanted`` slots (0: the usual number).

        Raises :class:`NoRoomError` when all slots are in use, :class:`JobRequestError` when the
        allocator never grants so many; both say the numbers.
        """
        ...

    def take_range(self, job: str, slots: int, *, over: SlotRange | None = None) -> SlotRange:
        """Takes ``slots`` slots for ``job`` anywhere beside what is taken, its own included.

        Unlike :meth:`take`, whatever the allocator's usual sizes are: a running job that changes
        its size has two ranges for a while, and is to have exactly so many. ``over``: one of its
        own that may share slots with the new one.

        Raises :class:`NoRoomError` where no gap is large enough, :class:`JobRequestError` where
        none can ever be; both say the numbers.
        """
        ...

    def hold(self, block: range, job: str) -> None:
        """Only ``job`` may :meth:`take_range` of these slots, until another block is held.

        An empty block: none is.
        """
        ...

    def claim(self, taken: SlotRange, *, over: SlotRange | None = None) -> None:
        """Takes exactly this range: a job had it before the controller started.

        ``over``: as in :meth:`take_range`.

        Raises :class:`NoRoomError` if some of it is taken, or is not on this switch.
        """
        ...

    def give_back(self, taken: SlotRange) -> None:
        """Frees a range that :meth:`take`, :meth:`take_range` or :meth:`claim` took."""
        ...

    def block(self, ranges: Iterable[range]) -> None:
        """Says which slots are not to be handed out, instead of those said before.

        They are somebody else's: entries of the switch that no job owns name them.
        """
        ...

    def fits(self, job: str, wanted: int, without: Iterable[SlotRange]) -> bool:
        """Whether :meth:`take` would find room if the ranges ``without`` were given back."""
        ...

    def why_full(self, job: str, wanted: int) -> str:
        """Why :meth:`take` finds no room, with the numbers."""
        ...

    def used(self) -> int:
        """Slots that no other job can have now."""
        ...
