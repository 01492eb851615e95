"""Worker of ``ina bench allreduce``; torchrun starts it. Rank 0 prints JSON lines.

Each size is reduced by ina and by Gloo in turns, so that both meet the same state of the machine.
Gloo has no AVG: it sums, then each rank divides, and the division is part of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import ina.torch
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES
from ina.torch import loopback_limit
from ina.torch.env import Settings

_WARM_UP = 2
MIB = 1 << 20


def _time_s(work: Callable[[], None], gloo: dist.ProcessGroup) -> float:
    """Seconds of the slowest rank, all ranks starting together."""
    dist.barrier(group=gloo)
    started = time.perf_counter()
    work()
    mine = torch.tensor([time.perf_counter() - started], dtype=torch.float64)
    dist.all_reduce(mine, dist.ReduceOp.MAX, group=gloo)
    return float(mine.item())


def _check(dtype: torch.dtype, elems: int, average: bool) -> int:
    """Reduce small integers, whose sum ``dtype`` holds exactly; how many elements are wrong."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    numbers = torch.arange(elems)
    modulus = _exact_integers(dtype) // workers
    tensor = ((numbers + rank) % modulus).to(dtype)
    dist.all_reduce(tensor, dist.ReduceOp.AVG if average else dist.ReduceOp.SUM)
    wanted = sum(((numbers + peer) % modulus for peer in range(workers)), torch.zeros(1))
    if average and dtype.is_floating_point:
        wanted = wanted * torch.tensor(1 / workers)  # in float32, as documented
    elif average:
        wanted = wanted // workers  # no number here is negative
    return int((tensor != wanted.to(dtype)).sum())


def _exact_integers(dtype: torch.dtype) -> int:
    """``dtype`` holds every integer up to this; at most float32's, in which ``_check`` counts."""
    return round(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else 1 << 24


def measure(
    tensor: torch.Tensor, average: bool, repeats: int, seconds: float, gloo: dist.ProcessGroup
) -> dict[str, Any]:
    """Times of one size and type, in seconds, of both backends; stops after ``seconds``."""
    workers = dist.get_world_size()
    wrong = torch.tensor([_check(tensor.dtype, tensor.numel(), average)])
    dist.all_reduce(wrong, group=gloo)

    def through_ina() -> None:
        dist.all_reduce(tensor, dist.ReduceOp.AVG if average else dist.ReduceOp.SUM)

    def with_gloo() -> None:
        dist.all_reduce(tensor, group=gloo)
        if average:
            rounding = None if tensor.is_floating_point() else "trunc"
            tensor.div_(workers, rounding_mode=rounding)

    tensor.fill_(1)
    resent_before = ina.torch.stats().session["retransmissions"]
    ina_s: list[float] = []
    gloo_s: list[float] = []
    begun = time.perf_counter()
    for turn in range(_WARM_UP + repeats):
        ina_time = _time_s(through_ina, gloo)
        tensor.fill_(1)
        gloo_time = _time_s(with_gloo, gloo)
        tensor.fill_(1)
        if turn >= _WARM_UP:
            ina_s.append(ina_time)
            gloo_s.append(gloo_time)
        late = torch.tensor([int(time.perf_counter() - begun > seconds and len(ina_s) >= 3)])
        dist.broadcast(late, 0, group=gloo)
        if late.item():
            break
    return {
        "elems": tensor.numel(),
        "ina_s": ina_s,
        "gloo_s": gloo_s,
        "wrong_elems": int(wrong.item()),
        "retransmissions": ina.torch.stats().session["retransmissions"] - resent_before,
    }


def main() -> None:
    """Measure every size, and the limit around it; one JSON line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", required=True, help="sizes, comma separated")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--op", choices=("sum", "avg"), default="sum")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=10.0, help="upper bound a size")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("ina")
    gloo = dist.new_group(backend="gloo")
    rank = dist.get_rank()

    def say(record: dict[str, Any]) -> None:
        if rank == 0:
            print(json.dumps(record), flush=True)

    packet_bytes = HEADER_BYTES + VALUE_BYTES * Settings.from_environ().values
    dtype = getattr(torch, arguments.dtype)
    pairs = max(1, (os.cpu_count() or 2) // 2)
    for mib in arguments.mib.split(","):
        # Before and after: the machine's better moment is nearer to what it can do.
        before = loopback_limit.measure(gloo, pairs, packet_bytes)
        tensor = torch.zeros(int(float(mib) * MIB) // dtype.itemsize, dtype=dtype)
        record = measure(tensor, arguments.op == "avg", arguments.repeats, arguments.seconds, gloo)
        limit = max(before, loopback_limit.measure(gloo, pairs, packet_bytes))
        say({"kind": "size", "mib": float(mib), "limit_bytes_per_s": limit, **record})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
