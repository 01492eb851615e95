"""Sums of float tensors by others than the switch, with the bits that the network would give them.

As in packets, a chunk's values share one exponent, on which the ranks agree, and become integers,
two or four in a word where they are packed. Of that two collectives are left to whoever sums them,
each of them exact in any order: the maximum of the chunks' *codes*, bytes, and the sum of words,
int32. Inf, NaN and zeros need no others: a code says them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ina.errors import InvalidInputError
from ina.extension.quantize import BlockWords
from ina.host.arrays import dtype_of
from ina.host.chunks import ChunkMap, Span, total
from ina.protocol.collective import Collective

Octets = NDArray[np.uint8]


class Place(NamedTuple):
    """A rank's, in the job whose bits are wanted."""

    rank: int
    world_size: int
    values_per_packet: int
    """Words of a packet."""


class WordSum:
    """One rank's part in the sum of one tensor, or of some of its chunks.

    Ranks take the same steps: :meth:`codes`, whose maximum over the ranks goes to :meth:`words`,
    whose sum over the ranks goes to :meth:`results`. `values` is the memory of the chunks, one
    after the other: C-contiguous bytes. All methods raise InvalidInputError where what they are
    given has another size.
    """

    def __init__(
        self, what: Collective, place: Place, number: int, spans: Sequence[Span] | None = None
    ) -> None:
        """`what`: of floats. `number`: the tensor's in the order of submission, from 1; random bits
        depend on it. `spans`: of whole chunks, as :class:`ChunkMap` has them; None: all.

        Raises InvalidInputError: int32, which needs none of this.
        """
        try:
            self._native = BlockWords(what, place.world_size, place.rank, number, place[2])
        except ValueError as error:
            raise InvalidInputError(f"{what}: {error}") from None
        chunk_map = ChunkMap(what, place.world_size, place.values_per_packet)
        self._chunk_elems = chunk_map.chunk_elems
        self._elem_bytes = dtype_of(what.value_type).itemsize
        self._what, self._place, self._number = what, place, number
        every = chunk_map.spans(chunk_map.all) if chunk_map.chunks else ()
        self._spans: tuple[Span, ...] = every if spans is None else tuple(spans)
        self.elems = total(self._spans)
        self.size_bytes = self.elems * self._elem_bytes
        self.chunks = sum(self._native.blocks(span.elems) for span in self._spans)
        self._words = sum(self._native.words(span.elems) for span in self._spans)

    def parts(self, words: int) -> Iterator[WordSum]:
        """Sums of some of its chunks each, in their order: of so many words, but for the last."""
        part: list[Span] = []
        room = most_chunks = max(1, words // self._place.values_per_packet)
        for span in self._spans:
            done = 0
            while done < span.elems:
                elems = min(span.elems - done, room * self._chunk_elems)
                part.append(Span(span.part, span.first + done, elems, span.number + done))
                room -= self._native.blocks(elems)
                done += elems
                if room == 0:
                    yield WordSum(self._what, self._place, self._number, part)
                    part, room = [], most_chunks
        if part:
            yield WordSum(self._what, self._place, self._number, part)

    def codes(self, values: Octets) -> Octets:
        """Those of this rank's chunks, one byte each."""
        _check("values", values, np.uint8, self.size_bytes)
        codes = np.empty(self.chunks, np.uint8)
        for _, elems, at, code, _ in self._places(values, codes, None):
            self._native.find_codes(at, elems, code)
        return codes

    def words(self, values: Octets, codes: Octets) -> NDArray[np.int32]:
        """What this rank gives to the sum."""
        _check("values", values, np.uint8, self.size_bytes)
        _check("codes", codes, np.uint8, self.chunks)
        words = np.empty(self._words, np.int32)
        for first, elems, at, code, word in self._places(values, codes, words):
            self._native.write(at, first, elems, code, word)
        return words

    def results(self, words: NDArray[np.int32], codes: Octets, values: Octets) -> None:
        """Write the sum, or average, to `values`. `words` are spoiled."""
        _check("values", values, np.uint8, self.size_bytes)
        _check("codes", codes, np.uint8, self.chunks)
        _check("words", words, np.int32, self._words)
        for _, elems, at, code, word in self._places(values, codes, words):
            self._native.read(word, elems, code, at)

    def _places(
        self, values: Octets, codes: Octets, words: NDArray[np.int32] | None
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Of each range: its first element, how many, and the addresses of all that is its."""
        at, code = values.ctypes.data, codes.ctypes.data
        word = 0 if words is None else words.ctypes.data
        for _, _, elems, number in self._spans:
            yield number, elems, at, code, word
            at += elems * self._elem_bytes
            code += self._native.blocks(elems)
            word += self._native.words(elems) * 4


def _check(name: str, array: NDArray[Any], dtype: type[np.generic], size: int) -> None:
    if array.dtype != dtype or array.size != size or not array.flags.c_contiguous:
        wanted = f"{size} of {np.dtype(dtype)}"
        raise InvalidInputError(f"{name}: {array.size} of {array.dtype}: want {wanted}, contiguous")
