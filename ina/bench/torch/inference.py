"""A rank of ``ina bench inference``: rank 0 asks, by ina and by Gloo in turns; the others are the
processes that conduct the plan's kernels over Gloo.

They run the same native kernels on the same parts, and send what the plan's packets say from rank
to rank; parts of sums meet in an all-reduce. A request is one message, not blocks.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from ina.bench.inference import InferenceOrder
from ina.bench.inference_plans import PLANS, one_hop, with_block
from ina.bench.testbed import asked_of
from ina.extension import infer as native
from ina.infer.client import InferenceClient
from ina.infer.files import write_plan
from ina.infer.local import LocalNodes, LocalOptions
from ina.infer.places import around
from ina.infer.placing import Placed, place, program_of
from ina.infer.plan import InferencePlan
from ina.infer.reference import answers_of

Ints = NDArray[np.int32]
Ask = Callable[[Ints], Callable[[], Ints]]
CLIENT = 0
FIRST = 1  # rank of the first node
_DEADLINE_S = 60.0
"""Of a request, by ina."""


class Conducted:
    """A node's share of the plan, a request at a time."""

    def __init__(self, plan: InferencePlan, placed: list[Placed], node: int, group: Any) -> None:
        """`group`: of all nodes."""
        where = around(plan, dict.fromkeys(plan.spec.nodes, "127.0.0.1:1"))
        self._stages = program_of(plan, placed, node, where).stages
        self._placed, self._plan, self._node, self._group = placed, plan, node, group
        self._in = [self._room(stage.rows_in, stage.columns_in) for stage in self._stages]
        self._out = [self._room(stage.rows_out, stage.columns_out) for stage in self._stages]
        self._sent: list[dist.Work] = []
        self._kept: list[torch.Tensor] = []

    def _room(self, rows: int, columns: native.Columns) -> torch.Tensor:
        return torch.zeros((max(rows, 1), columns.high - columns.low), dtype=torch.int32)

    def serve(self, request: int) -> None:
        """One request, from the first stage to the last."""
        for work in self._sent:
            work.wait()
        self._sent, self._kept = [], []
        for k, stage in enumerate(self._stages):
            if not stage.is_mine:
                continue
            self._receive(k, stage)
            added = self._out[stage.adds] if stage.adds >= 0 else self._in[k]
            native.run_kernel(
                stage, self._in[k].data_ptr(), added.data_ptr(), self._out[k].data_ptr()
            )
            if stage.is_summed:
                dist.all_reduce(self._out[k], group=self._group)
                native.finish_kernel(stage, self._out[k].data_ptr())
            for edge in stage.outbound:
                self._send(k, FIRST + edge.node, edge.columns)
            if stage.is_last and request % stage.turns == stage.turn:
                self._send(k, CLIENT, stage.columns_out)

    def _receive(self, k: int, stage: native.Stage) -> None:
        if k == 0:
            dist.recv(self._in[0], CLIENT)
        for edge in stage.inbound:
            part = self._room(stage.rows_in, edge.columns)
            dist.recv(part, FIRST + edge.node)
            first = edge.columns.low - stage.columns_in.low
            self._in[k][:, first : first + part.shape[1]] = part
        if k > 0 and stage.own.high > stage.own.low:
            before = self._stages[k - 1].columns_out.low
            first = stage.own.low - stage.columns_in.low
            width = stage.own.high - stage.own.low
            source = self._out[k - 1][:, stage.own.low - before : stage.own.low - before + width]
            self._in[k][:, first : first + width] = source

    def _send(self, k: int, to: int, columns: native.Columns) -> None:
        first = columns.low - self._stages[k].columns_out.low
        part = self._out[k][:, first : first + columns.high - columns.low].contiguous()
        self._kept.append(part.clone())
        work = dist.isend(self._kept[-1], to)
        assert work is not None
        self._sent.append(work)


class GlooClient:
    """Asks the ranks that conduct the plan."""

    def __init__(self, plan: InferencePlan, placed: list[Placed]) -> None:
        self._plan, self._last = plan, placed[-1]
        self._request = 0

    def ask(self, samples: Ints) -> Callable[[], Ints]:
        """Of as many samples as the plan's block has. Returns what waits for the answers."""
        holders = list(self._last.layout.parts)
        assert self._last.layout.is_whole, "the last stage is whole"
        node = holders[self._request % len(holders)]
        self._request += 1
        given = torch.from_numpy(samples)
        rows = self._plan.spec.block * self._last.shape.rows
        out = torch.empty((rows, self._last.shape.width), dtype=torch.int32)
        sent = dist.isend(given, FIRST + self._plan.entry)
        came = dist.irecv(out, FIRST + node)
        assert sent is not None, "this rank is in the group"
        assert came is not None

        def wait() -> Ints:
            sent.wait()
            came.wait()
            shape = self._plan.spec.block, self._last.shape.rows, self._last.shape.width
            answers: Ints = out.numpy().reshape(shape)
            return answers

        return wait


def measured(ask: Ask, samples: Ints, want: Ints, order: InferenceOrder) -> dict[str, Any]:
    """One request after the other, and then `order.window` at a time; the same of all ways."""
    times_s, wrong = [], 0
    for turn in range(order.warm + order.repeats):
        begun = time.perf_counter()
        got = ask(samples)()
        if turn >= order.warm:
            times_s.append(time.perf_counter() - begun)
        wrong += int((got != want).sum())
    waiting: deque[Callable[[], Ints]] = deque()
    rates = []
    for _ in range(order.rounds):
        begun = time.perf_counter()
        for _ in range(order.burst):
            if len(waiting) == order.window:
                wrong += int((waiting.popleft()() != want).sum())
            waiting.append(ask(samples))
        while waiting:
            wrong += int((waiting.popleft()() != want).sum())
        rates.append(order.burst / (time.perf_counter() - begun))
    return {"times_s": times_s, "rates": rates, "wrong": wrong}


def kernels_s(plan: InferencePlan, repeats: int = 50) -> float:
    """Seconds of all kernels for a block, on one core, without any sending."""
    placed = place(plan)
    where = around(plan, dict.fromkeys(plan.spec.nodes, "127.0.0.1:1"))
    stages = [
        stage
        for node in range(len(plan.spec.nodes))
        for stage in program_of(plan, placed, node, where).stages
        if stage.is_mine
    ]
    rooms = []
    for stage in stages:
        shapes = [(stage.rows_in, stage.columns_in), (stage.rows_out, stage.columns_out)]
        rooms.append([np.ones((r, c.high - c.low), np.int32) for r, c in shapes])
    calls = [
        (stage, given.ctypes.data, made.ctypes.data)
        for stage, (given, made) in zip(stages, rooms, strict=True)
    ]
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        for stage, given, made in calls:
            native.run_kernel(stage, given, given, made)
        best = min(best, time.perf_counter() - begun)
    return best


def served_by_ina(plan: InferencePlan, folder: Path, measure: Callable[[Ask], Any]) -> Any:
    """What `measure` makes of the plan's client, with its nodes running here."""
    path = folder / f"{plan.spec.name}.toml"
    read = write_plan(path, plan)
    with (
        LocalNodes(path, read, folder / "places.json", LocalOptions()) as nodes,
        InferenceClient(read, nodes.where, deadline_s=_DEADLINE_S) as client,
    ):
        return measure(lambda samples: client.ask(samples).wait)


def as_client(order: InferenceOrder, plan: InferencePlan) -> list[dict[str, Any]]:
    """All sizes, of each ina and Gloo in turns; a record each."""
    random = np.random.default_rng(1)
    given = plan.spec.input
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:

        def all_sizes(ask: Ask) -> None:
            for size in order.sizes:
                samples = random.integers(given.low, given.high + 1, (size, given.width))
                asked = np.ascontiguousarray(samples.astype(np.int32))
                want = answers_of(plan, asked)
                found: dict[str, dict[str, Any]] = {}
                whole = with_block(plan, size)
                gloo = GlooClient(whole, place(whole))
                for _ in range(order.turns):
                    for way, how in (("ina", ask), ("gloo", gloo.ask)):
                        here = measured(how, asked, want, order)
                        into = found.setdefault(way, {"times_s": [], "rates": [], "wrong": 0})
                        for key in into:
                            into[key] += here[key]
                records.append({"size": size, **found, "kernels_s": kernels_s(whole)})

        served_by_ina(plan, Path(temporary), all_sizes)
        hop = one_hop(plan)
        samples = random.integers(given.low, given.high + 1, (hop.spec.block, given.width))
        asked = np.ascontiguousarray(samples.astype(np.int32))
        floor = served_by_ina(
            hop, Path(temporary), lambda ask: measured(ask, asked, answers_of(hop, asked), order)
        )
    return [*records, {"size": hop.spec.block, "hop": floor}]


def main() -> None:
    """Measure; rank 0 prints one JSON line."""
    order = asked_of(InferenceOrder)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    nodes = dist.new_group(list(range(FIRST, world)))
    plan = PLANS[order.plan](world - FIRST, order.block)
    if rank == CLIENT:
        print(json.dumps({"sizes": as_client(order, plan)}), flush=True)
    else:
        for size in order.sizes:
            whole = with_block(plan, size)
            share = Conducted(whole, place(whole), rank - FIRST, nodes)
            each = order.warm + order.repeats + order.rounds * order.burst
            for request in range(order.turns * each):
                share.serve(request)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
