"""The order in which sums over Gloo begin, which is all that tells Gloo what belongs together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from ina.host.word_sum import Place
from ina.protocol.coding import Coding
from ina.protocol.collective import Collective, Reduction
from ina.protocol.spec import ValueType
from ina.torch.dense import octets
from ina.torch.errors import FallbackError, GroupClosedError
from ina.torch.fallback.sums import GlooSum, GlooSums
from ina.torch.paths import collective_of
from tests.worlds.fakes.gloo import HeldGloo

VALUES = 64
END = GroupClosedError("it was closed")


@pytest.fixture
def gloo() -> HeldGloo:
    return HeldGloo()


@pytest.fixture
def sums(gloo: HeldGloo) -> Iterator[GlooSums]:
    sums = GlooSums(gloo, "g")
    sums.sum_as(Place(0, 1, VALUES))
    yield sums
    for work in gloo.works:
        work.let_go()
    sums.close(END)


def floats(elems: int = 100, coding: Coding | None = None) -> GlooSum:
    tensor = torch.ones(elems)
    return GlooSum(collective_of(tensor, Reduction.SUM, coding or Coding()), tensor)


def integers(elems: int, dtype: torch.dtype = torch.int32) -> GlooSum:
    return GlooSum(Collective(ValueType.INT32, elems), torch.ones(elems, dtype=dtype))


def test_what_cannot_be_begun_ends_with_that_and_so_does_what_comes_behind(
    sums: GlooSums,
) -> None:
    """Nobody else would end its wait; others may have begun what this rank has not."""
    real = torch.ones(2, dtype=torch.complex64).conj().imag  # bits that no other type has
    broken = GlooSum(Collective(ValueType.FLOAT32, 2), real)
    behind = integers(7)
    for one in (broken, behind):
        sums.start(one)
    for one in (broken, behind):
        with pytest.raises(FallbackError, match="a collective over Gloo failed"):
            one.wait()


@pytest.mark.parametrize("elems", [0, 1])
def test_a_tensor_of_one_element_or_none_may_have_any_strides(sums: GlooSums, elems: int) -> None:
    tensor = torch.as_strided(torch.ones(10), (elems,), (5 * elems,))
    assert octets(tensor).shape == (4 * elems,)
    assert octets(tensor).data_ptr() == tensor.data_ptr()


def test_all_of_a_sum_begins_before_the_next_one_and_none_waits_for_its_end(
    gloo: HeldGloo, sums: GlooSums
) -> None:
    all_of_them = [
        *(floats(), integers(7), floats(0)),
        floats(2000, Coding(8)),
    ]
    for one in all_of_them:
        sums.start(one)
    ballot = integers(3, torch.int64)
    sums.start_least(ballot)
    assert gloo.wait_for(1) == ["most of 2"]
    gloo.works[0].let_go()
    assert gloo.wait_for(4) == ["most of 2", "sum of 100", "sum of 7", "most of 8"]
    gloo.works[3].let_go()
    assert gloo.wait_for(6)[4:] == ["sum of 500", "least of 3"]
    assert not any(one.done() for one in all_of_them)
    for work in gloo.works:
        work.let_go()
    for one in [*all_of_them, ballot]:
        one.wait()
        assert one.source.eq(1).all()


def test_what_has_ended_is_not_written_to_and_nothing_waits_for_it(
    gloo: HeldGloo, sums: GlooSums
) -> None:
    first, second = floats(), floats()
    sums.start(first)
    sums.start(second)
    gloo.wait_for(1)
    sums.close(END)
    for one in (first, second):
        with pytest.raises(GroupClosedError, match="it was closed"):
            one.wait()
    first.source.fill_(5)
    gloo.works[0].let_go()
    for thread in sums._threads:
        thread.join(30)
        assert not thread.is_alive()
    assert first.source.eq(5).all()
    assert len(gloo.calls) == 1
    late = floats()
    sums.start(late)
    with pytest.raises(GroupClosedError):
        late.wait()


def test_nothing_begins_after_what_could_not(gloo: HeldGloo, sums: GlooSums) -> None:
    """Others may have begun its second part, or not."""
    first, second = floats(), floats()
    sums.start(first)
    sums.start(second)
    gloo.wait_for(1)
    gloo.works[0].let_go(RuntimeError("Connection reset by peer"))
    for one in (first, second):
        with pytest.raises(FallbackError, match=r"collective over Gloo failed.* by peer"):
            one.wait()
    assert len(gloo.calls) == 1
