"""Worker of ``ina bench allreduce``, one process a rank. Rank 0 prints JSON lines.

Each size is reduced by ina and by Gloo in turns, so that both meet the same state of the machine;
by ina in several ways, each a group with a job of its own: how sums are verified, how floats
travel, and with nodes on the hosts or without.
Gloo has no AVG: it sums, then each rank divides, and the division is part of its time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
import torch.distributed as dist

import ina.torch
from ina.bench.allreduce import ReduceOrder
from ina.bench.testbed import asked_of
from ina.bench.torch import loopback_limit, memory
from ina.protocol.coding import CODINGS, exact_below
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES
from ina.protocol.verify import Verify
from ina.torch.env import Settings

_WARM_UP = 2
_SAMPLE_S = 0.25
"""A sample repeats a short operation until it takes about so long: a barrier ends less exactly."""
_MAX_ITERATIONS = 64
_RESENDS = ("retransmissions", "losses", "spurious_resends", "probes")
_SAMPLE_BYTES = 64 << 20
"""Each repetition within a sample has a tensor of its own, as a training step does."""


@dataclass
class Backend:
    """What one of the two needed."""

    name: str
    reduce: Callable[[torch.Tensor], object]
    verify: str = ""
    """How ina's sums are verified."""
    wire: str = ""
    """How ina's floats travel."""
    host_node: bool | None = None
    """Whether what a host's ranks send is added up there; None: nobody asked."""
    group: Any = None
    """Whose session ina's is."""
    counted: dict[str, int] = field(default_factory=dict)
    """By ina's sessions: ``_RESENDS`` of all ranks, shared packets of this one."""
    times_s: list[float] = field(default_factory=list)
    """Of one operation, of the slowest rank."""
    cpu_s: list[float] = field(default_factory=list)
    """Of one operation: all threads of a rank, mean of the ranks that do not run the switch."""
    iterations: int = 1
    wrong: int = 0
    """Values of the checked operation that were wrong, all ranks."""

    def record(self) -> dict[str, Any]:
        """Plain data."""
        names = ("name", "verify", "wire", "host_node", "times_s", "cpu_s", "iterations", "wrong")
        found = {name: getattr(self, name) for name in names} | self.counted
        if self.group is not None:
            found["transport"] = ina.torch.stats(self.group).session["transport"]
        return found


class Turns:
    """Measures all backends on one size and dtype; ``groups``: ina's, by their options."""

    def __init__(
        self,
        elems: int,
        dtype: torch.dtype,
        average: bool,
        gloo: Any,
        groups: Sequence[tuple[ina.torch.Options, Any]],
    ) -> None:
        self._gloo, self._average = gloo, average
        self._workers = dist.get_world_size()
        generator = torch.Generator().manual_seed(dist.get_rank())
        if dtype.is_floating_point:
            self._values = torch.randn(elems, generator=generator).to(dtype)
        else:
            self._values = torch.randint(-1000, 1000, (elems,), generator=generator).to(dtype)
        self._tensors = [self._values.clone()]
        self.backends = [
            Backend(
                "ina",
                partial(self._through_ina, group),
                options.verify or "",
                options.wire or "",
                options.host_node,
                group,
            )
            for options, group in groups
        ]
        self.backends.append(Backend("gloo", self._with_gloo))

    def measure(self, repeats: int, seconds: float, spoil: int) -> list[dict[str, Any]]:
        """Samples in turns until there are ``repeats``, or ``seconds`` are over and there are 3."""
        before = [_counted(backend) for backend in self.backends]
        for backend in self.backends:
            self._check(backend, spoil if backend.name == "ina" else 0)
            for _ in range(_WARM_UP):
                self._sample(backend)
            self._settle(backend)
        begun = time.perf_counter()
        for _ in range(repeats):
            for backend in self.backends:
                self._sample(backend)
            done = len(self.backends[0].times_s)
            if self._any(time.perf_counter() - begun > seconds and done >= 3):
                break
        for backend, start in zip(self.backends, before, strict=True):
            now = _counted(backend)
            backend.counted = {name: now[name] - start[name] for name in now}
            resends = torch.tensor([backend.counted.get(name, 0) for name in _RESENDS])
            dist.all_reduce(resends, group=self._gloo)
            if now:
                backend.counted |= zip(_RESENDS, resends.tolist(), strict=True)
        return [backend.record() for backend in self.backends]

    def _through_ina(self, group: Any, tensor: torch.Tensor) -> None:
        dist.all_reduce(tensor, dist.ReduceOp.AVG if self._average else dist.ReduceOp.SUM, group)

    def _with_gloo(self, tensor: torch.Tensor) -> None:
        dist.all_reduce(tensor, group=self._gloo)
        if self._average:
            rounding = None if tensor.is_floating_point() else "trunc"
            tensor.div_(self._workers, rounding_mode=rounding)

    def _sample(self, backend: Backend) -> None:
        while len(self._tensors) < backend.iterations:
            self._tensors.append(self._values.clone())
        tensors = self._tensors[: backend.iterations]
        for tensor in tensors:
            tensor.copy_(self._values)
        dist.barrier(group=self._gloo)
        cpu, started = time.process_time(), time.perf_counter()
        for tensor in tensors:
            backend.reduce(tensor)
        mine = torch.tensor([time.perf_counter() - started], dtype=torch.float64)
        spent = torch.tensor([time.process_time() - cpu, 1.0], dtype=torch.float64)
        if ina.torch.stats().switch is not None:  # this process runs the switch, too
            spent.zero_()
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=self._gloo)
        dist.all_reduce(spent, group=self._gloo)
        backend.times_s.append(mine.item() / len(tensors))
        if spent[1] > 0:
            backend.cpu_s.append((spent[0] / spent[1]).item() / len(tensors))

    def _settle(self, backend: Backend) -> None:
        """Chooses how often a sample repeats the operation, and forgets the warm-up."""
        count = round(_SAMPLE_S / max(backend.times_s[-1], 1e-9))
        nbytes = self._values.numel() * self._values.element_size()
        count = max(1, min(count, _MAX_ITERATIONS, _SAMPLE_BYTES // max(1, nbytes)))
        agreed = torch.tensor([count])
        dist.broadcast(agreed, 0, group=self._gloo)
        backend.iterations = int(agreed.item())
        backend.times_s.clear()
        backend.cpu_s.clear()

    def _check(self, backend: Backend, spoil: int) -> None:
        """Reduces small integers, whose sum the dtype holds exactly, and counts what is wrong."""
        dtype, elems = self._values.dtype, self._values.numel()
        numbers = torch.arange(elems, dtype=torch.int32)
        modulus = _exact_integers(dtype) // self._workers
        if backend.wire and dtype.is_floating_point:
            bits = CODINGS[backend.wire].bits
            modulus = min(modulus, exact_below(bits, self._workers))
        tensor = ((numbers + dist.get_rank()) % modulus).to(dtype)
        backend.reduce(tensor)
        tensor[:spoil] += 1
        wanted = torch.zeros(elems)
        for peer in range(self._workers):
            wanted += (numbers + peer) % modulus
        if self._average and dtype.is_floating_point:
            wanted *= torch.tensor(1 / self._workers)  # in float32, as documented
        elif self._average:
            wanted = wanted // self._workers  # no number here is negative
        differ = (tensor != wanted.to(dtype)).sum().reshape(1)
        if backend.name == "gloo" and self._average and dtype.is_floating_point:
            # It divides in the tensor's own type: one rounding more.
            exact = wanted.to(dtype).float()
            differ = (~torch.isclose(tensor.float(), exact, rtol=torch.finfo(dtype).eps)).sum()
            differ = differ.reshape(1)
        dist.all_reduce(differ, group=self._gloo)
        backend.wrong = int(differ.item())

    def _any(self, here: bool) -> bool:
        """Rank 0's answer."""
        said = torch.tensor([int(here)])
        dist.broadcast(said, 0, group=self._gloo)
        return bool(said.item())


def _counted(backend: Backend) -> dict[str, int]:
    if backend.group is None:
        return {}
    session = ina.torch.stats(backend.group).session
    return {name: session[name] for name in (*_RESENDS, "shared_packets")}


def _exact_integers(dtype: torch.dtype) -> int:
    """``dtype`` holds every integer up to this; at most float32's, in which ``_check`` counts."""
    return round(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else 1 << 24


def main() -> None:
    """Measure every size, and the limit around it; one JSON line each."""
    asked = asked_of(ReduceOrder)
    case = asked.case
    torch.set_num_threads(1)
    first, *others = [
        ina.torch.Options(verify=cast(Verify, verify), wire=wire, host_node=host_node)
        for verify in case.verify
        for wire in case.wire
        for host_node in ((True, False) if case.host_nodes else (None,))
    ]
    dist.init_process_group("ina", pg_options=first)
    groups: list[tuple[ina.torch.Options, Any]] = [(first, dist.group.WORLD)]
    for other in others:
        groups.append((other, dist.new_group(backend="ina", pg_options=other)))
    gloo = dist.new_group(backend="gloo")
    rank = dist.get_rank()

    def say(record: dict[str, Any]) -> None:
        if rank == 0:
            print(json.dumps(record), flush=True)

    host = Settings.from_environ().host or "127.0.0.1"
    packet_bytes = HEADER_BYTES + VALUE_BYTES * case.values
    dtype = getattr(torch, case.dtype)
    pairs = max(1, (os.cpu_count() or 2) // 2)

    def limit() -> float:
        if not asked.measures_limit:
            return 0.0
        return loopback_limit.measure(gloo, pairs, packet_bytes, host)

    for size in asked.sizes:
        elems = max(1, size // dtype.itemsize)
        record: dict[str, Any] = {"size_bytes": size, "elems": elems}
        if asked.measures_memory:
            record |= memory.measure(elems, dtype, gloo, case.spoil)
        else:
            # Before and after: the machine's better moment is nearer to what it can do.
            before = limit()
            turns = Turns(elems, dtype, case.op == "avg", gloo, groups)
            backends = turns.measure(case.repeats, case.seconds, case.spoil)
            record["backends"] = backends
            record["limit_bytes_per_s"] = max(before, limit())
        say(record)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
