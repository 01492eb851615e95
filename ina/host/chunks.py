"""Where the values of a collective's chunks lie in its ranks' memory: as the core has it.

Of a collective with parts each chunk is one part's, and parts take turns: chunk k is of part k
modulo the ranks. See ``native/host/core/submission.hpp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ina.protocol.coding import values_per_word
from ina.protocol.collective import Collective, CollectiveKind

Ranges = tuple[tuple[int, int], ...]
"""Of chunks: ascending, apart from each other; each from its first to before its second number."""


class Span(NamedTuple):
    """Values in a row, of whole chunks of one part."""

    part: int
    """0 of collectives without."""
    first: int
    """In the part."""
    elems: int
    number: int
    """Of the first value among those of all parts, each filled up to whole chunks, in their
    order."""


class ChunkMap:
    """Of one collective, of so many ranks; a packet has so many words."""

    def __init__(self, what: Collective, ranks: int, chunk_words: int) -> None:
        self._what, self._ranks = what, ranks
        self.chunk_elems = chunk_words * values_per_word(what.value_type)
        kind = CollectiveKind(what.kind)
        self.is_together = (
            kind is CollectiveKind.ALL_GATHER and what.elems <= self.chunk_elems // ranks
        )
        """Whether a packet has room for all parts; then they are one chunk."""
        self.parts = ranks if kind.has_parts else 1
        self._pieces = -(-what.elems // self.chunk_elems)
        self.chunks = self.parts * self._pieces
        if self.is_together or kind is CollectiveKind.BARRIER:
            self.chunks = 1

    @property
    def all(self) -> Ranges:
        """All chunks."""
        return ((0, self.chunks),)

    def owner(self, chunk: int) -> int:
        """The rank whose chunk it is, if it is one's."""
        return chunk % self._ranks if self.parts > 1 else self._what.root

    def spans(self, chunks: Ranges) -> tuple[Span, ...]:
        """Of these chunks, part by part; of small parts that are one chunk, each of them.

        Raises ValueError: there are no such chunks.
        """
        for begin, end in chunks:
            if not 0 <= begin < end <= self.chunks:
                raise ValueError(f"{self._what} has no chunks {begin}..{end - 1}")
        if self.is_together or self.chunks == 1:
            elems = self._what.elems
            return tuple(
                Span(part, 0, elems, part * self.chunk_elems) for part in range(self.parts)
            )[: self.parts if chunks and elems else 0]
        return tuple(
            span
            for part in range(self.parts)
            for begin, end in chunks
            if (span := self._span(part, begin, end)).elems > 0
        )

    def _span(self, part: int, begin: int, end: int) -> Span:
        """What is the part's of the chunks in a row."""
        first, behind = (-(-(chunk - part) // self.parts) for chunk in (begin, end))
        values = first * self.chunk_elems
        elems = min(behind * self.chunk_elems, self._what.elems) - values
        return Span(part, values, elems, part * self._pieces * self.chunk_elems + values)


def total(spans: Sequence[Span]) -> int:
    """Values in all of them."""
    return sum(span.elems for span in spans)
