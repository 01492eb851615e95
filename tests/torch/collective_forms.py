"""Every collective of torch.distributed, in forms that take tensors of any layout and dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager

from tests.torch.layouts import Lay

Tensors = list[torch.Tensor]

OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
WAYS = ("sync", "wait", "future")
"""Of waiting: the call itself, its work, its work's future."""


@dataclass(frozen=True)
class Call:
    """One collective on one rank of two."""

    group: dist.ProcessGroup
    rank: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    out: Lay
    """Layout of what is written, or read and written."""
    into: Lay
    """Layout of what is read alone."""
    way: str
    device: str = "cpu"

    @property
    def later(self) -> bool:
        return self.way != "sync"

    def values(self, of: int = 0) -> torch.Tensor:
        """1 to 5, or for bool both values; others for each rank and each ``of``."""
        elems = torch.Size(self.shape).numel()
        numbers = (torch.arange(elems) * 3 + 2 * self.rank + of) % 5 + 1
        small = numbers % 2 if self.dtype == torch.bool else numbers
        return small.to(torch.float32).to(self.dtype).reshape(self.shape).to(self.device)

    def joined(self, of: int = 0) -> torch.Tensor:
        """Values for both ranks, one after the other."""
        both = [self.values(of).view(-1), self.values(of + 1).view(-1)]
        shape = (2 * self.shape[0], *self.shape[1:]) if self.shape else (2,)
        return torch.cat([one.view(torch.uint8) for one in both]).view(self.dtype).view(shape)

    def zeros(self) -> torch.Tensor:
        return self.out(torch.zeros_like(self.values()))

    def zeros_joined(self) -> torch.Tensor:
        return self.out(torch.zeros_like(self.joined()))

    def finish(self, work: Any) -> None:
        if self.way == "wait":
            work.wait()
        elif self.way == "future":
            try:
                future = work.get_future()
            except RuntimeError:  # Gloo's reduce_scatter has none
                work.wait()
            else:
                future.wait()


@dataclass(frozen=True)
class Form:
    """A way to call a collective; ``run`` returns what this rank has afterwards."""

    name: str
    run: Callable[[Call], Tensors]
    total: Callable[[Call], Tensors] | None = None
    """The same with SUM, where it is an average: Gloo has none."""
    root_alone: bool = False
    """Only rank 0 has something that is written."""
    reads_only: bool = False
    """Nothing of the caller's is written: it makes tensors of its own."""


def _all_reduce(call: Call, op: str) -> Tensors:
    one = call.out(call.values())
    call.finish(dist.all_reduce(one, getattr(dist.ReduceOp, op), call.group, call.later))
    return [one]


def _reduce(call: Call, op: str) -> Tensors:
    one = call.out(call.values())
    call.finish(dist.reduce(one, 0, getattr(dist.ReduceOp, op), call.group, call.later))
    return [one] if call.rank == 0 else []


def _reduce_scatter(call: Call, op: str) -> Tensors:
    one, parts = call.zeros(), [call.into(call.values()), call.into(call.values(1))]
    reduction = getattr(dist.ReduceOp, op)
    call.finish(dist.reduce_scatter(one, parts, reduction, call.group, call.later))
    return [one]


def _reduce_scatter_tensor(call: Call, op: str) -> Tensors:
    one, both = call.zeros(), call.into(call.joined())
    reduction = getattr(dist.ReduceOp, op)
    call.finish(dist.reduce_scatter_tensor(one, both, reduction, call.group, call.later))
    return [one]


def _all_reduce_coalesced(call: Call, op: str) -> Tensors:
    both = [call.out(call.values()), call.out(call.joined(2))]
    with _coalescing_manager(call.group, async_ops=call.later) as manager:
        for one in both:
            dist.all_reduce(one, getattr(dist.ReduceOp, op), call.group)
    if call.later:
        manager.wait()
    return both


def _broadcast(call: Call) -> Tensors:
    one = call.out(call.values())
    call.finish(dist.broadcast(one, group=call.group, async_op=call.later, group_src=1))
    return [one]


def _scatter(call: Call) -> Tensors:
    one = call.zeros()
    parts = [call.into(call.values()), call.into(call.values(1))] if call.rank == 0 else None
    call.finish(dist.scatter(one, parts, group=call.group, async_op=call.later, group_src=0))
    return [one]


def _gather(call: Call) -> Tensors:
    parts = [call.zeros(), call.zeros()] if call.rank == 0 else None
    mine = call.into(call.values())
    call.finish(dist.gather(mine, parts, group=call.group, async_op=call.later, group_dst=0))
    return parts or []


def _all_gather(call: Call) -> Tensors:
    parts = [call.zeros(), call.zeros()]
    call.finish(dist.all_gather(parts, call.into(call.values()), call.group, call.later))
    return parts


def _all_gather_into_tensor(call: Call) -> Tensors:
    both, mine = call.zeros_joined(), call.into(call.values())
    call.finish(dist.all_gather_into_tensor(both, mine, call.group, call.later))
    return [both]


def _all_gather_of_group(call: Call) -> Tensors:
    parts = [[call.zeros(), call.zeros()] for _ in range(2)]
    mine = [call.into(call.values()), call.into(call.values(1))]
    call.group.allgather_coalesced(parts, mine).wait()
    return [*parts[0], *parts[1]]


def _all_gather_coalesced(call: Call) -> Tensors:
    both = [call.zeros_joined(), call.zeros_joined()]
    mine = [call.into(call.values()), call.into(call.values(1))]
    with _coalescing_manager(call.group, async_ops=call.later) as manager:
        for one, of in zip(both, mine, strict=True):
            dist.all_gather_into_tensor(one, of, call.group)
    if call.later:
        manager.wait()
    return both


def _reduce_scatter_coalesced(call: Call) -> Tensors:
    both = [call.zeros(), call.zeros()]
    mine = [call.into(call.joined()), call.into(call.joined(1))]
    with _coalescing_manager(call.group, async_ops=call.later) as manager:
        for one, of in zip(both, mine, strict=True):
            dist.reduce_scatter_tensor(one, of, group=call.group)
    if call.later:
        manager.wait()
    return both


def _all_to_all(call: Call) -> Tensors:
    parts = [call.zeros(), call.zeros()]
    mine = [call.into(call.values()), call.into(call.values(1))]
    call.finish(dist.all_to_all(parts, mine, call.group, call.later))
    return parts


def _all_to_all_single(call: Call, splits: list[int] | None = None) -> Tensors:
    both, mine = call.zeros_joined(), call.into(call.joined())
    work = dist.all_to_all_single(both, mine, splits, splits, call.group, call.later)
    call.finish(work)
    return [both]


def _send_and_recv(call: Call) -> Tensors:
    if call.rank == 1:
        dist.send(call.into(call.values()), group=call.group, group_dst=0)
        return []
    one = call.zeros()
    dist.recv(one, group=call.group, group_src=1)
    return [one]


def _recv_from_anyone(call: Call) -> Tensors:
    if call.rank == 1:
        dist.send(call.into(call.values()), group=call.group, group_dst=0)
        return []
    one = call.zeros()
    assert dist.recv(one, group=call.group) == 1
    return [one]


def _isend_and_irecv(call: Call) -> Tensors:
    one, mine = call.zeros(), call.into(call.values())
    works = [
        dist.irecv(one, group=call.group, group_src=1 - call.rank),  # or nothing is sent either
        dist.isend(mine, group=call.group, group_dst=1 - call.rank),
    ]
    for work in works:
        assert work is not None
        work.wait()
    return [one]


def _batch(call: Call) -> Tensors:
    one, mine = call.zeros(), call.into(call.values())
    peer = 1 - call.rank
    calls = [
        dist.P2POp(dist.irecv, one, group=call.group, group_peer=peer),
        dist.P2POp(dist.isend, mine, group=call.group, group_peer=peer),
    ]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return [one]


def _functional(name: str, make: Callable[[Call], Any]) -> Form:
    def run(call: Call) -> Tensors:
        made, wait = make(call), functional.wait_tensor
        return [wait(one) for one in (made if isinstance(made, list) else [made])]  # type: ignore[no-untyped-call]

    return Form(f"functional {name}", run, reads_only=True)


def _reductions(name: str, run: Callable[..., Tensors], ops: tuple[str, ...]) -> list[Form]:
    total = partial(run, op="SUM")
    return [Form(f"{name} {op}", partial(run, op=op), total if op == "AVG" else None) for op in ops]


SOME_OPS = ("SUM", "AVG", "MAX")

FORMS = (
    *_reductions("all_reduce", _all_reduce, OPS),
    *_reductions("all_reduce coalesced", _all_reduce_coalesced, SOME_OPS),
    *_reductions("reduce_scatter", _reduce_scatter, SOME_OPS),
    *_reductions("reduce_scatter_tensor", _reduce_scatter_tensor, SOME_OPS),
    *_reductions("reduce", _reduce, OPS),
    Form("reduce_scatter_tensor coalesced", _reduce_scatter_coalesced),
    Form("broadcast", _broadcast),
    Form("scatter", _scatter),
    Form("gather", _gather, root_alone=True),
    Form("all_gather", _all_gather),
    Form("all_gather_into_tensor", _all_gather_into_tensor),
    Form("all_gather_into_tensor coalesced", _all_gather_coalesced),
    Form("allgather_coalesced", _all_gather_of_group),
    Form("all_to_all", _all_to_all),
    Form("all_to_all_single", _all_to_all_single),
    Form("all_to_all_single, splits", partial(_all_to_all_single, splits=[2, 2])),
    Form("send and recv", _send_and_recv, root_alone=True),
    Form("recv from anyone", _recv_from_anyone, root_alone=True),
    Form("isend and irecv", _isend_and_irecv),
    Form("batch_isend_irecv", _batch),
    *(
        _functional(name, make)
        for name, make in (
            ("all_reduce", lambda c: functional.all_reduce(c.into(c.values()), "sum", c.group)),
            ("all_reduce max", lambda c: functional.all_reduce(c.into(c.values()), "max", c.group)),
            (
                "all_reduce_coalesced",
                lambda c: functional.all_reduce_coalesced(
                    [c.into(c.values()), c.into(c.joined())], "sum", c.group
                ),
            ),
            (
                "all_gather_tensor",
                lambda c: functional.all_gather_tensor(c.into(c.values()), 0, c.group),
            ),
            (
                "all_gather_into_tensor_coalesced",
                lambda c: functional.all_gather_into_tensor_coalesced(
                    [c.into(c.values()), c.into(c.joined())], c.group
                ),
            ),
            (
                "reduce_scatter_tensor",
                lambda c: functional.reduce_scatter_tensor(c.into(c.joined()), "sum", 0, c.group),
            ),
            (
                "reduce_scatter_tensor_coalesced",
                lambda c: functional.reduce_scatter_tensor_coalesced(
                    [c.into(c.joined()), c.into(c.joined(1))], "sum", [0, 0], c.group
                ),
            ),
            (
                "all_to_all_single",
                lambda c: functional.all_to_all_single(c.into(c.joined()), None, None, c.group),
            ),
            ("broadcast", lambda c: functional.broadcast(c.into(c.values()), 1, c.group)),
        )
    ),
)
