"""Worker of ``ina bench allreduce``; torchrun starts it. Rank 0 prints JSON lines.

Each size is reduced by ina and by Gloo in turns, so that both meet the same state of the machine.
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


def _check(tensor: torch.Tensor, rank: int, workers: int) -> int:
    """Fill with small integers, sum; how many elements are wrong. Exact in float32."""
    pattern = torch.arange(tensor.numel(), dtype=torch.float32) % 251
    tensor.copy_(pattern + rank)
    dist.all_reduce(tensor)
    wanted = pattern * workers + workers * (workers - 1) // 2
    return int((tensor != wanted).sum())


def measure(elems: int, repeats: int, seconds: float, gloo: dist.ProcessGroup) -> dict[str, Any]:
    """Times of one size, in seconds, of both backends; stops after ``seconds``."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    tensor = torch.zeros(elems)
    wrong = torch.tensor([_check(tensor, rank, workers)])
    dist.all_reduce(wrong, group=gloo)
    tensor.fill_(1.0 / workers)
    resent_before = ina.torch.stats().session["retransmissions"]
    ina_s: list[float] = []
    gloo_s: list[float] = []
    begun = time.perf_counter()
    for turn in range(_WARM_UP + repeats):
        ina_time = _time_s(lambda: dist.all_reduce(tensor), gloo)
        tensor.fill_(1.0 / workers)
        gloo_time = _time_s(lambda: dist.all_reduce(tensor, group=gloo), gloo)
        tensor.fill_(1.0 / workers)
        if turn >= _WARM_UP:
            ina_s.append(ina_time)
            gloo_s.append(gloo_time)
        late = torch.tensor([int(time.perf_counter() - begun > seconds and len(ina_s) >= 3)])
        dist.broadcast(late, 0, group=gloo)
        if late.item():
            break
    return {
        "elems": elems,
        "ina_s": ina_s,
        "gloo_s": gloo_s,
        "wrong_elems": int(wrong.item()),
        "retransmissions": ina.torch.stats().session["retransmissions"] - resent_before,
    }


def main() -> None:
    """Measure every size, and the limit around it; one JSON line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", required=True, help="sizes, comma separated")
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
    pairs = max(1, (os.cpu_count() or 2) // 2)
    for mib in arguments.mib.split(","):
        # Before and after: the machine's better moment is nearer to what it can do.
        before = loopback_limit.measure(gloo, pairs, packet_bytes)
        record = measure(int(float(mib) * MIB) // 4, arguments.repeats, arguments.seconds, gloo)
        limit = max(before, loopback_limit.measure(gloo, pairs, packet_bytes))
        say({"kind": "size", "mib": float(mib), "limit_bytes_per_s": limit, **record})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
