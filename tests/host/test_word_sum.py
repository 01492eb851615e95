"""Sums of words by others than the switch: the documented bits, of whole tensors and of parts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.errors import InvalidInputError
from ina.host.arrays import VALUE_TYPES, reduction
from ina.host.chunks import ChunkMap, Ranges
from ina.host.word_sum import Place, WordSum
from ina.protocol.coding import CODINGS, WHOLE, Coding
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from ina.testing import numerics, packed
from ina.testing.numerics import Array
from tests.selection import examples
from tests.worlds.word_sums import by_numpy

WORDS = 4
"""Of a packet."""
summed = partial(by_numpy, words=WORDS)


@st.composite
def arrays_of_ranks(draw: st.DrawFn) -> list[Array]:
    dtype = draw(st.sampled_from(numerics.FLOATS))
    size = draw(st.integers(1, 90))
    drawn = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = []
    for _ in range(draw(st.integers(1, 16))):
        smallest, largest = draw(st.sampled_from([(-3, 3), (-140, -80), (-14, 127)]))
        sizes = 2.0 ** drawn.integers(smallest, largest, size)
        with np.errstate(over="ignore"):
            parts.append((drawn.standard_normal(size) * sizes).astype(dtype))
    for value in draw(st.lists(st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan]), max_size=3)):
        at = draw(st.integers(0, size - 1))
        rank = draw(st.integers(0, len(parts) - 1))
        if value == 0:
            for part in parts:
                part[at : at + 20] = value
        parts[rank][at] = value
    return parts


@st.composite
def some_chunks(draw: st.DrawFn, count: int) -> Ranges:
    ends = sorted(draw(st.sets(st.integers(0, count), max_size=6)))
    return tuple(zip(ends[::2], ends[1::2], strict=False))


@settings(max_examples=examples(300), deadline=None)
@given(
    arrays_of_ranks(),
    st.sampled_from(["sum", "avg"]),
    st.sampled_from(list(CODINGS.values())),
    st.integers(1, 2**40),
    st.data(),
)
def test_bits_are_the_documented_ones(
    parts: list[Array], op: str, coding: Coding, number: int, data: st.DataObject
) -> None:
    right = packed.all_reduce(parts, op, WORDS, coding, number)
    what = coding.of(Collective(VALUE_TYPES[parts[0].dtype], parts[0].size, reduction(op)))
    for found in summed(parts, what, number, None):
        assert numerics.same_bits(found, right)
    per_chunk = WORDS * 32 // coding.bits
    chunks = data.draw(some_chunks(-(-right.size // per_chunk)))

    def cut(array: Array) -> Array:
        pieces = [array[begin * per_chunk : end * per_chunk] for begin, end in chunks]
        return np.concatenate([array[:0], *pieces])

    for found in summed([cut(part) for part in parts], what, number, chunks):
        assert numerics.same_bits(found, cut(right))


@settings(max_examples=examples(100), deadline=None)
@given(arrays_of_ranks(), st.sampled_from(list(CODINGS.values())), st.integers(1, 40), st.data())
def test_parts_have_the_words_of_the_whole(
    parts: list[Array], coding: Coding, most_words: int, data: st.DataObject
) -> None:
    what = coding.of(Collective(VALUE_TYPES[parts[0].dtype], parts[0].size))
    chunks = data.draw(some_chunks(-(-what.elems * coding.bits // (32 * WORDS))))
    spans = None if chunks is None else ChunkMap(what, 16, WORDS).spans(chunks)
    whole = WordSum(what, Place(0, 16, WORDS), 3, spans)
    values = parts[0].view(np.uint8)[: whole.size_bytes]
    codes = whole.codes(values)
    words, begin, chunk = [np.empty(0, np.int32)], 0, 0
    for part in whole.parts(most_words):
        assert 0 < part.chunks <= max(1, most_words // WORDS)
        some = values[begin : begin + part.size_bytes]
        agreed = codes[chunk : chunk + part.chunks]
        assert part.codes(some).tolist() == agreed.tolist()
        words.append(part.words(some, agreed))
        begin, chunk = begin + part.size_bytes, chunk + part.chunks
    assert (begin, chunk) == (whole.size_bytes, whole.chunks)
    assert np.concatenate(words).tolist() == whole.words(values, codes).tolist()


def test_values_that_columns_have_no_room_for_are_no_numbers() -> None:
    what = Coding(8).of(Collective(ValueType.FLOAT32, 5))
    parts: list[Any] = [np.ones(5, np.float32) for _ in range(128)]
    assert all(np.isnan(found).all() for found in summed(parts, what, 1, None))


def test_what_does_not_fit_is_refused() -> None:
    place = Place(0, 2, WORDS)
    what = Collective(ValueType.FLOAT16, 10)
    with pytest.raises(ValueError, match=r"sum of float16\[10\] has no chunks 1\.\.3"):
        ChunkMap(what, 2, WORDS).spans(((1, 4),))
    with pytest.raises(InvalidInputError, match=r"sum of int32\[10\]: int32 has no blocks"):
        WordSum(Collective(ValueType.INT32, 10), place, 1)
    with pytest.raises(InvalidInputError, match="2 workers, 0 values a packet"):
        WordSum(what, Place(0, 2, 0), 1)
    one = WordSum(what, place, 1)
    values, codes = np.zeros(20, np.uint8), np.zeros(3, np.uint8)
    words = one.words(values, codes)
    with pytest.raises(InvalidInputError, match="values: 19 of uint8: want 20 of uint8"):
        one.codes(values[1:])
    with pytest.raises(InvalidInputError, match="codes: 2 of uint8: want 3"):
        one.words(values, codes[:2])
    with pytest.raises(InvalidInputError, match="words: 10 of int64: want 10 of int32, contiguous"):
        one.results(words.astype(np.int64), codes, values)


def test_nothing_is_summed_of_nothing() -> None:
    what = WHOLE.of(Collective(ValueType.FLOAT32, 0))
    assert [found.size for found in summed([np.empty(0, np.float32)] * 2, what, 1, None)] == [0, 0]
