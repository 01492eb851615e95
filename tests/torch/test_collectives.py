"""Each collective of the process group, in torch's spellings, against the reference switch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions
from torch.distributed import ReduceOp

from ina.errors import InaError
from ina.testing import numerics
from ina.torch import ProcessGroupIna
from ina.torch.errors import GroupClosedError, OverlappingTensorError
from ina.torch.views import as_array
from tests.torch.model_groups import VALUES, model_groups

RANKS = 3
SUMMED = (torch.float32, torch.float16, torch.bfloat16, torch.int32)
MOVED = (
    *SUMMED,
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64, torch.float64),
    *(torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.uint16, torch.uint32, torch.uint64),
)
SIZES = (0, 1, 7, 1000)


@pytest.fixture(autouse=True)
def untold(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ina.torch")


def any_bits(dtype: torch.dtype, shape: Sequence[int], seed: int) -> torch.Tensor:
    """All bit patterns that there are, NaNs with payloads too; of bool, 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, tuple(shape), generator=generator).bool()
    size = torch.empty(0, dtype=dtype).element_size() * int(np.prod(shape))
    octets = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
    return octets.view(dtype).view(*shape) if size else torch.empty(tuple(shape), dtype=dtype)


def numbers(dtype: torch.dtype, elems: int, seed: int) -> torch.Tensor:
    """What can be summed."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.int32:
        return torch.randint(-1000, 1000, (elems,), dtype=dtype, generator=generator)
    return torch.randn(elems, generator=generator).to(dtype)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    def octets(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.contiguous().view(-1).view(torch.uint8)

    return one.dtype == other.dtype and torch.equal(octets(one), octets(other))


def summed(parts: Sequence[torch.Tensor], op: ReduceOp.RedOpType = ReduceOp.SUM) -> torch.Tensor:
    """With the network's bits."""
    how = "sum" if op == ReduceOp.SUM else "avg"
    if parts[0].numel() == 0:
        return torch.empty_like(parts[0])
    array = numerics.all_reduce([as_array(part) for part in parts], how, VALUES)
    return torch.from_numpy(array.view(np.uint8)).view(parts[0].dtype)


def check(
    ranks: int, do: Callable[..., None], monkeypatch: pytest.MonkeyPatch, **kwargs: Any
) -> Any:
    """``do(group, rank)`` on all; returns the groups' stats."""
    with model_groups(ranks, monkeypatch, **kwargs) as groups:
        groups.run(do)
        return [group.stats() for group in groups.groups]


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_all_gather_of_any_bits(loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def do(group: ProcessGroupIna, rank: int) -> None:
        for dtype in MOVED:
            for size in SIZES:
                parts = [any_bits(dtype, (size,), one) for one in range(RANKS)]
                outputs = [torch.zeros_like(part) for part in parts]
                group.allgather([outputs], [parts[rank]]).wait()
                assert all(map(same_bits, outputs, parts)), (dtype, size)
                whole = torch.zeros(RANKS * size, dtype=dtype)
                group._allgather_base(whole, parts[rank]).wait()
                assert same_bits(whole, torch.cat(parts)), (dtype, size)

    for stats in check(RANKS, do, monkeypatch, loss=loss):
        assert stats.network_all_gathers == 2 * len(MOVED) * len(SIZES)
        assert stats.other_collectives == {}
        widths = [torch.empty(0, dtype=dtype).element_size() for dtype in MOVED]
        assert stats.network_moved_bytes == 2 * RANKS * sum(SIZES) * sum(widths)


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_broadcast_of_any_bits(loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def do(group: ProcessGroupIna, rank: int) -> None:
        for number, dtype in enumerate(MOVED):
            root = number % RANKS
            for size in SIZES:
                wanted = any_bits(dtype, (size,), 7)
                tensor = wanted.clone() if rank == root else torch.zeros_like(wanted)
                before = tensor._version
                group.broadcast(tensor, root).wait()
                assert same_bits(tensor, wanted), (dtype, size)
                assert tensor._version == before

    for stats in check(RANKS, do, monkeypatch, loss=loss):
        assert stats.network_broadcasts == len(MOVED) * len(SIZES)
        assert stats.other_collectives == {}


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_sums_have_the_bits_of_all_reduce(loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """reduce_scatter each rank's part, reduce the root's tensor and no other."""

    def do(group: ProcessGroupIna, rank: int) -> None:
        for dtype in SUMMED:
            for size in SIZES:
                for op in (ReduceOp.SUM, ReduceOp.AVG):
                    inputs = [numbers(dtype, RANKS * size, one) for one in range(RANKS)]
                    wanted = summed([one.view(RANKS, -1)[rank] for one in inputs], op)
                    given = inputs[rank].clone()
                    output = torch.zeros(size, dtype=dtype)
                    group._reduce_scatter_base(output, given, _scatter_options(op)).wait()
                    assert same_bits(output, wanted), (dtype, size, op)
                    assert same_bits(given, inputs[rank])
                    output = torch.zeros(size, dtype=dtype)
                    chunks = [one.clone() for one in given.view(RANKS, -1)]
                    group.reduce_scatter(output, chunks, op).wait()
                    assert same_bits(output, wanted), (dtype, size, op)
                    mine = given.clone()
                    group.reduce(mine, 1, op).wait()
                    assert same_bits(mine, summed(inputs, op) if rank == 1 else given)

    for stats in check(RANKS, do, monkeypatch, loss=loss):
        each = len(SUMMED) * len(SIZES) * 2
        assert (stats.network_reduce_scatters, stats.network_reduces) == (2 * each, each)
        assert stats.fallbacks == 0


def _scatter_options(op: ReduceOp.RedOpType) -> dist.ReduceScatterOptions:
    options = dist.ReduceScatterOptions()
    options.reduceOp = op  # type: ignore[assignment]  # torch converts the enumeration
    return options


def test_nothing_is_copied_that_lies_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session reads and writes the caller's memory, of chunks in a list too."""
    with model_groups(2, monkeypatch) as groups:
        seen: list[list[tuple[int, int]]] = [[], []]
        for rank, session in enumerate(groups.sessions):
            submit = session.submit

            def spy(
                ptr_in: int, ptr_out: int, *args: Any, r: int = rank, s: Any = submit, **kw: Any
            ) -> Any:
                seen[r].append((ptr_in, ptr_out))
                return s(ptr_in, ptr_out, *args, **kw)

            monkeypatch.setattr(session, "submit", spy)

        def do(group: ProcessGroupIna, rank: int) -> None:
            whole, part = torch.ones(2000), torch.zeros(1000)
            chunks = list(whole.chunk(2))
            calls = [
                (group._reduce_scatter_base(part, whole), whole, part),
                (group.reduce_scatter(part, chunks), whole, part),
                (group._allgather_base(whole, part), part, whole),
                (group.allgather([chunks], [part]), part, whole),
                (group._allgather_base(whole, chunks[rank]), chunks[rank], whole),
                (group.broadcast(part, 0), part, part),
                (group.reduce(part, 0), part, part),
            ]
            for work, _, _ in calls:
                work.wait()
            places = [(one.data_ptr(), other.data_ptr()) for _, one, other in calls]
            assert seen[rank] == places

        groups.run(do)


def test_memory_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of no dimension, or not contiguous."""

    def do(group: ProcessGroupIna, rank: int) -> None:
        scalar = torch.tensor(rank == 1)
        group.broadcast(scalar, 1).wait()
        assert scalar.item() is True
        own = torch.tensor(float(rank))
        into = torch.zeros(RANKS)
        group._allgather_base(into, own).wait()
        assert into.tolist() == [0.0, 1.0, 2.0]
        part = torch.tensor(0.0)
        group._reduce_scatter_base(part, torch.arange(3.0)).wait()
        assert part.item() == RANKS * rank

        table = torch.full((6, 5), float(rank))
        group.broadcast(table.t()[1:3], 2).wait()
        assert table[:, 1:3].eq(2).all()
        assert table[:, 3:].eq(rank).all()
        assert table[:, 0].eq(rank).all()
        image = torch.zeros(RANKS, 4, 4, 2).to(memory_format=torch.channels_last)
        group._allgather_base(image, torch.full((4, 2, 4), float(rank)).transpose(1, 2)).wait()
        assert torch.equal(image[:, 3, 1, 1], torch.arange(3.0))
        columns = torch.zeros(4, RANKS)
        lines = [columns[:, one] for one in range(RANKS)]
        group.allgather([lines], [torch.full((4,), float(rank))]).wait()
        assert columns.eq(torch.arange(3.0)).all()
        strided = torch.zeros(5, 2).t()[0]
        group._reduce_scatter_base(strided, torch.ones(5 * RANKS, 2)[:, 1]).wait()
        assert strided.eq(RANKS).all()

    check(RANKS, do, monkeypatch)


def test_memory_that_overlaps_or_is_conjugate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written to is refused; what is read while it is written to is copied."""

    def do(group: ProcessGroupIna, rank: int) -> None:
        number = torch.tensor([complex(rank, 1), complex(2, rank)]).conj()
        into = torch.zeros(2 * RANKS, dtype=torch.complex64).conj()
        group._allgather_base(into, number).wait()
        assert into.tolist() == [complex(r, -1) if i == 0 else complex(2, -r)
                                 for r in range(RANKS) for i in range(2)]  # fmt: skip

        overlapping = torch.arange(3.0 * RANKS) + 100 * rank
        group._allgather_base(overlapping, overlapping[1:4]).wait()
        wanted = torch.cat([torch.arange(1.0, 4.0) + 100 * one for one in range(RANKS)])
        assert torch.equal(overlapping, wanted)
        overlapping = torch.arange(3.0 * RANKS)
        group._reduce_scatter_base(overlapping[1:4], overlapping.clone()[:]).wait()
        kept = torch.arange(3.0 * RANKS)
        within = kept.clone()
        group._reduce_scatter_base(within[1:4], within).wait()
        assert torch.equal(within[1:4], RANKS * kept.view(RANKS, 3)[rank])
        assert torch.equal(within[4:], kept[4:])

        shared = torch.zeros(1).expand(4)
        with pytest.raises(OverlappingTensorError):
            group._allgather_base(torch.zeros(1).expand(4 * RANKS), shared)
        with pytest.raises(OverlappingTensorError):
            group.broadcast(shared, 0)
        with pytest.raises(OverlappingTensorError):
            group.reduce(shared, 0)
        with torch.inference_mode():
            frozen = torch.zeros(4, 2).t()[0]
            group.broadcast(frozen if rank else torch.ones(4), 0).wait()
            assert frozen.eq(1 if rank else 0).all()

    check(RANKS, do, monkeypatch)


def test_several_that_complete_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def do(group: ProcessGroupIna, rank: int) -> None:
        own = [torch.full((5,), rank), torch.full((2, 3), rank == 1), torch.zeros(0)]
        wholes = [torch.zeros(RANKS * one.numel(), dtype=one.dtype) for one in own]
        work = group.allgather_into_tensor_coalesced(wholes, own)
        work.wait()
        assert [one.data_ptr() for one in work.result()] == [one.data_ptr() for one in wholes]
        for whole, one in zip(wholes, own, strict=True):
            parts = [torch.full_like(one, r if one.dtype != torch.bool else r == 1)
                     for r in range(RANKS)]  # fmt: skip
            assert torch.equal(whole, torch.cat([part.view(-1) for part in parts]))
        lists = [[torch.zeros_like(one) for one in own] for _ in range(RANKS)]
        group.allgather_coalesced(lists, own).wait()
        assert [int(one[0][0]) for one in lists] == [0, 1, 2]
        assert [bool(one[1][0, 0]) for one in lists] == [False, True, False]
        outputs = [torch.zeros(4), torch.zeros(1, dtype=torch.int32)]
        inputs = [torch.ones(4 * RANKS), torch.full((RANKS,), rank, dtype=torch.int32)]
        group.reduce_scatter_tensor_coalesced(outputs, inputs).wait()
        assert outputs[0].eq(RANKS).all()
        assert outputs[1].item() == 3

    for stats in check(RANKS, do, monkeypatch):
        assert (stats.network_all_gathers, stats.network_reduce_scatters) == (6, 2)


def test_both_spellings_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def do(group: ProcessGroupIna, rank: int) -> None:
        one = torch.tensor([float(rank)])
        options = dist.BroadcastOptions()
        options.rootRank = 2
        group.broadcast([one], options).wait()
        group.broadcast(one, root=2, timeout=timedelta(seconds=9)).wait()
        assert one.item() == 2
        reduce = dist.ReduceOptions()
        reduce.rootRank, reduce.reduceOp = 1, ReduceOp.AVG  # type: ignore[assignment]
        mine = torch.tensor([float(rank)])
        group.reduce([mine], reduce).wait()
        assert mine.item() == rank
        group.reduce(mine, 1, op=ReduceOp.SUM).wait()
        assert mine.item() == (3 if rank == 1 else rank)
        outputs = [torch.zeros(1) for _ in range(RANKS)]
        work = group.allgather(outputs, torch.tensor([float(rank)]))
        assert [one.item() for one in work.get_future().wait()] == [0, 1, 2]
        assert [one is other for one, other in zip(work.result(), outputs, strict=True)]
        group.allgather([outputs], [torch.tensor([rank + 1.0])], AllgatherOptions()).wait()
        assert [one.item() for one in outputs] == [1, 2, 3]
        group.barrier().wait()
        group.barrier(dist.BarrierOptions()).wait()
        group.barrier(timeout=timedelta(seconds=9)).wait()

    for stats in check(RANKS, do, monkeypatch):
        assert stats.network_barriers == 3
        assert (stats.network_broadcasts, stats.network_reduces) == (2, 2)
        assert stats.other_collectives == {}


def test_each_path_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def do(group: ProcessGroupIna, rank: int) -> None:
        for _ in range(2):
            group.barrier().wait()
            group.broadcast(torch.ones(3, dtype=torch.bool), 0).wait()
            group.allgather([[torch.zeros(1) for _ in range(2)]], [torch.zeros(1)]).wait()
            group.reduce(torch.zeros(1), 0).wait()
            group.reduce(torch.zeros(1), 0, ReduceOp.MAX).wait()
            outputs = [[torch.zeros(1), torch.zeros(1)]] if rank == 0 else []
            gather = dist.GatherOptions()
            gather.rootRank = 0
            group.gather(outputs, [torch.zeros(1)], gather).wait()

    stats, _ = check(2, do, monkeypatch)
    said = [one.getMessage() for one in caplog.records if one.levelno >= logging.INFO]
    assert said[0].startswith(
        "ina: group 0: sums, all_gather, broadcast and barrier go through the network (job "
    )
    assert said[0].endswith("over UDP 127.0.0.1:" + said[0].rsplit(":", 1)[1])
    assert said[1:] == [
        "ina: barrier in group 0 goes through the network",
        "ina: broadcast of bool in group 0 goes through the network",
        "ina: all_gather of float32 in group 0 goes through the network",
        "ina: reduce of float32 in group 0 goes through the network",
        "ina: reduce MAX of float32 in group 0 goes through Gloo because the network sums SUM and"
        " AVG only",
        "ina: gather in group 0 goes through Gloo because the network does not do it",
    ]
    assert stats.other_collectives == {"gather": 2}
    assert stats.fallback_reasons == {"reduce MAX of float32": 2}


def test_switches_that_only_sum_move_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They would bring each rank zeros of all others."""

    def do(group: ProcessGroupIna, rank: int) -> None:
        for _ in range(2):
            whole = torch.zeros(500 * RANKS)
            group._allgather_base(whole, torch.full((500,), float(rank))).wait()
            assert whole.view(RANKS, -1).sum(1).tolist() == [0.0, 500.0, 1000.0]
            one = torch.tensor(rank)
            group.broadcast(one, 2).wait()
            assert one.item() == 2
            part = torch.zeros(500)
            group._reduce_scatter_base(part, whole).wait()
            assert part.eq(RANKS * rank).all()
            group.reduce(part, 0).wait()
            assert part[0].item() == (9 if rank == 0 else RANKS * rank)
            group.barrier().wait()

    for stats in check(RANKS, do, monkeypatch, has_shapes=False):
        assert sum(stats.other_collectives.values()) == 4
        assert stats.other_collectives["broadcast"] == 2
        assert (stats.network_all_gathers, stats.network_broadcasts) == (0, 0)
        assert (stats.network_reduce_scatters, stats.network_reduces) == (2, 2)
        assert stats.network_barriers == 2
    said = [one.getMessage() for one in caplog.records]
    why = "goes through Gloo because the job's switches only sum"
    assert f"ina: broadcast in group 0 {why}" in said
    assert sum(why in one for one in said if "broadcast" in one) >= 1
    assert said[0].startswith("ina: group 0: sums go through the network (job ")


def test_what_does_not_fit_is_torchs_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def do(group: ProcessGroupIna, rank: int) -> None:
        one = torch.zeros(1)
        with pytest.raises((RuntimeError, ValueError)):
            group._allgather_base(torch.zeros(RANKS + 1), one).wait()
        with pytest.raises((RuntimeError, ValueError)):
            group.allgather([[one] * (RANKS - 1)], [one]).wait()
        with pytest.raises((RuntimeError, ValueError)):
            group._allgather_base(torch.zeros(RANKS, dtype=torch.int32), one).wait()
        sparse = torch.eye(2).to_sparse()
        with pytest.raises((RuntimeError, ValueError)):
            group.broadcast(sparse, 0).wait()

    check(RANKS, do, monkeypatch)


def test_ranks_that_differ_in_the_root_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def do(group: ProcessGroupIna, rank: int) -> None:
        try:
            group.broadcast(torch.ones(3000), rank).wait()
        except InaError as error:
            said.append(str(error))

    with model_groups(2, monkeypatch) as groups:
        groups.run(do)
    for rank in range(2):
        assert any(f"broadcast of bytes[12000] from rank {rank}" in one for one in said), said


def test_a_group_that_is_closed_does_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_groups(1, monkeypatch) as groups:
        (group,) = groups.groups
        group.shutdown()
        calls: tuple[Callable[[], Any], ...] = (
            group.barrier,
            lambda: group.broadcast(torch.ones(1), 0),
            lambda: group.reduce(torch.ones(1), 0),
            lambda: group._allgather_base(torch.ones(1), torch.ones(1)),
            lambda: group._reduce_scatter_base(torch.ones(1), torch.ones(1)),
        )
        for call in calls:
            with pytest.raises(GroupClosedError, match="has been destroyed"):
                call()
