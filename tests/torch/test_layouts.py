"""Every collective, layout and dtype: Gloo's answer for contiguous tensors, or a clear error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.futures import Future

from ina.protocol.collective import Reduction
from ina.torch import moves, pieces
from ina.torch.dense import Loan, check_writable, memory_of
from ina.torch.errors import OverlappingTensorError
from tests.selection import LONG
from tests.torch import layout_cases
from tests.worlds.processes.launch import finish, launch, outcome, start

DEADLINE_S = 900.0 if LONG else 270.0


@pytest.mark.timeout(DEADLINE_S + 20)
def test_collectives_of_any_layout(tmp_path: Path) -> None:
    for wrong, seen in launch(layout_cases.all_of_them, 2, tmp_path / "w", deadline_s=DEADLINE_S):
        assert wrong == []
        assert seen["equal"] > 750
        assert seen["overlap refused"] > 150


def test_collectives_of_any_layout_with_a_dead_peer(tmp_path: Path) -> None:
    processes = start(layout_cases.with_a_dead_peer, 2, tmp_path / "w")
    finish(processes, 120)
    ok, said = outcome(tmp_path / "w", 0)
    assert ok, said
    wrong, seen = said
    assert wrong == []
    assert seen["fails"] > 300


@pytest.mark.parametrize("lay", [torch.Tensor.clone, torch.Tensor.t], ids=["dense", "strided"])
def test_a_write_by_a_thread_is_no_change_that_autograd_counts(
    lay: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """It would be one at any moment of the caller's, who may have been given a view by then."""
    told, summed, part, gathered = (lay(torch.zeros(3, 3)) for _ in range(4))
    loan = Loan()
    loan.written(told).copy_(torch.ones(3, 3))
    loan.give_back(_Done()).wait()
    whole = pieces.whole(summed)
    scattered = pieces.scattered(part, torch.ones(9), Reduction.SUM)
    parts = moves.gathered(gathered, torch.ones(3), 0)
    for piece in (whole, scattered, parts):
        into = piece.buffer if piece.target is None else piece.target
        memory_of(into).view(torch.float32).fill_(1)
        if piece.deliver is not None:
            piece.deliver()
    for one in (told, summed, part, gathered):
        assert one.eq(1).all()
        assert one._version == 0


class _Done(dist.Work):
    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        return True

    def get_future(self) -> Future[list[torch.Tensor]]:
        future: Future[list[torch.Tensor]] = Future()
        future.set_result([])
        return future


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_sums_of_any_layout_on_a_gpu(tmp_path: Path) -> None:
    for wrong, seen in launch(layout_cases.sums_on_a_gpu, 2, tmp_path / "w", deadline_s=120):
        assert wrong == []
        assert seen["network"] >= seen["equal"] > 200


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((4,), (0,), True),
        ((1,), (0,), False),
        ((0, 4), (0, 0), False),
        ((2, 3), (3, 1), False),
        ((2, 3), (1, 2), False),
        ((3, 2), (2, 4), True),
        ((2, 3), (1, 1), True),
        ((2, 3), (3, 2), False),  # 0 2 4 and 3 5 7
        ((3, 4), (3, 2), True),
        ((2, 2, 2), (8, 0, 1), True),
    ],
)
def test_overlap(shape: tuple[int, ...], strides: tuple[int, ...], overlaps: bool) -> None:
    tensor = torch.zeros(20).as_strided(shape, strides)
    if overlaps:
        with pytest.raises(OverlappingTensorError, match="share memory"):
            check_writable(tensor)
    else:
        check_writable(tensor)
