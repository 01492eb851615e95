"""A job of a scenario while it runs: its ranks' steps, its incarnations, and what became of them.

A job whose rank dies, or that the network fails, ends, as it does under torchrun; and as there it
begins again, with all of its ranks, where all of them had got to.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ina import modes
from ina.congestion import Congestion, WindowError
from ina.errors import InaError
from ina.extension import sim as native
from ina.host.arrays import Array
from ina.host.options import WorkerOptions
from ina.protocol.verify import checked_verify
from ina.sim.causes import scripted_end
from ina.sim.errors import CrashedError
from ina.sim.hooked import HookedJob
from ina.sim.plane import ControlPlane
from ina.sim.rank import Rank
from ina.sim.report import JobReport, Violation
from ina.sim.scenario import HostSpec, JobSpec, Scenario, TensorSpec
from ina.sim.tensors import Place, difference, dtype_of

RESTART_S = 1.0
"""Until who watches over the processes has seen that they ended, and has started others."""
JOIN_S = 30.0
STALL_S = 30.0


@dataclass(frozen=True)
class Look:
    """Packets so far, and what became of them."""

    sent: int = 0
    resends: int = 0
    lost: int = 0
    overtaken: int = 0
    probes: int = 0
    marked: int = 0
    corrupted: int = 0
    damaged: int = 0
    """Frames that a NIC has dropped for their ICRC."""

    @classmethod
    def at(cls, worker: native.Worker) -> Look:
        """Of one, now."""
        counters = worker.counters
        return cls(
            sent=counters.packets_sent,
            resends=counters.retransmissions,
            lost=counters.losses,
            overtaken=counters.spurious,
            probes=counters.probes,
            marked=counters.ecn_marked,
            corrupted=counters.corrupted,
            damaged=worker.damaged_packets,
        )


@dataclass
class Incarnation:
    """From joining to the end, or to an error."""

    ranks: list[Rank]
    began_s: float
    first_step: int
    done: list[int]
    """By rank: steps."""
    step_s: list[float] = field(default_factory=list)
    reduced_s: list[float] = field(default_factory=list)
    """Of rank 0, by step: from the first tensor's beginning to the last one's end."""
    looks: dict[int, list[Look]] = field(default_factory=lambda: defaultdict(list))
    """Of each rank, as it ended each step."""
    error: str = ""
    """Of the rank that ended first with one: others' may follow from that."""
    newest: dict[int, Look] = field(default_factory=dict)
    """Of each rank."""
    window: int = 0
    in_flight_limit: int = 0
    """Of rank 0, at the last look."""
    least_limit: int = 1 << 30
    most_in_flight: int = 0
    ended_s: float = 0.0

    def look(self) -> None:
        """Takes what the workers have counted so far."""
        workers = [rank.worker for rank in self.ranks if rank.worker is not None]
        if not workers:
            return
        for worker in workers:
            self.least_limit = min(self.least_limit, worker.in_flight_limit)
            self.most_in_flight = max(self.most_in_flight, worker.in_flight)
            self.window = worker.window
        self.in_flight_limit = workers[0].in_flight_limit
        for number, rank in enumerate(self.ranks):
            if rank.worker is not None:
                self.newest[number] = Look.at(rank.worker)

    def ended_step(self, number: int) -> None:
        """Takes what that rank has counted so far."""
        worker = self.ranks[number].worker
        if worker is not None:
            self.newest[number] = Look.at(worker)
            self.looks[number].append(self.newest[number])

    def total(self, name: str) -> int:
        """Of all ranks, each as it was seen last."""
        return sum(getattr(look, name) for look in self.newest.values())


class JobRun:
    """One job, from its time on."""

    def __init__(
        self,
        spec: JobSpec,
        host: HostSpec,
        plane: ControlPlane,
        seed: int,
        violate: Callable[[Violation], None],
        event: Callable[[str], None],
        aggregator: str = "",
        congestion: Congestion | None = None,
    ) -> None:
        """``spec``: with its hosts. ``violate`` and ``event`` are told of what is found, and of
        what happens. ``aggregator``: the embedded one that its rank 0 runs. ``congestion``: of its
        ranks, if they do not go by the controller's."""
        self.spec = spec
        self.incarnations: list[Incarnation] = []
        self.sums_checked = 0
        self._host = host
        self._plane = plane
        self._seed = seed
        self._violate = violate
        self._event = event
        self._aggregator = aggregator
        self._congestion = congestion
        self._hooked = HookedJob(spec, plane.fabric.values, self._gradients) if spec.hook else None
        self._right: dict[tuple[Place, int], Array] = {}
        self._zeros: dict[TensorSpec, Array] = {}
        self.steps_done = 0
        """By all ranks."""

    @property
    def name(self) -> str:
        """The job's."""
        return self.spec.name

    def rank(self, number: int) -> Rank | None:
        """Its newest process."""
        return self.incarnations[-1].ranks[number] if self.incarnations else None

    async def run(self, at_ms: float) -> None:
        """Until all steps are done; begins again after each error. Raises WindowError."""
        await asyncio.sleep(at_ms / 1e3)
        self.steps_done = 0
        while self.steps_done < self.spec.steps:
            incarnation = self._begin()
            await asyncio.gather(*(self._rank_run(incarnation, rank) for rank in incarnation.ranks))
            incarnation.ended_s = self._plane.loop.time()
            self.steps_done = min(incarnation.done)
            if incarnation.error:
                what = f"ended after {self.steps_done} steps: {incarnation.error}"
                self._event(f"job {self.name} {what}")
                await asyncio.sleep(RESTART_S)
            elif self.steps_done == incarnation.first_step:
                await asyncio.sleep(RESTART_S)  # all of its ranks have crashed
        self._event(f"job {self.name} is done")

    def _begin(self) -> Incarnation:
        count = self.spec.workers
        shares = len(set(self.spec.hosts)) < count
        options = WorkerOptions(
            timeout_s=JOIN_S,
            op_timeout_s=STALL_S,
            slots=self.spec.slots,
            mode=self.spec.mode,
            priority=self.spec.priority,
            tenant=self.spec.tenant,
            verify=checked_verify(f"job {self.name}: verify", self.spec.verify)
            if self.spec.verify
            else None,
            congestion=self._congestion,
        )
        ranks = [
            self._plane.rank(
                self.name,
                number,
                count,
                self.spec.hosts[number],
                options,
                wraps_after=self.spec.wraps_after,
                aggregator=self._aggregator if number == 0 else "",
                shares_results=shares,
                packet_cost_ns=self._host.packet_ns,
                kibibyte_cost_ns=self._host.kibibyte_ns,
                buffer_bytes=round(self._host.buffer_kib * 1024),
                trains=self._host.trains,
                wake_ns=round(self._host.wake_us * 1e3),
                wake_jitter_ns=round(self._host.wake_jitter_us * 1e3),
            )
            for number in range(count)
        ]
        now_s = self._plane.loop.time()
        incarnation = Incarnation(ranks, now_s, self.steps_done, [self.steps_done] * count)
        self.incarnations.append(incarnation)
        return incarnation

    async def _rank_run(self, incarnation: Incarnation, rank: Rank) -> None:
        """One process's life."""
        number = rank.seat.rank
        chance = random.Random(f"{self._seed} {self.name} {number} {len(self.incarnations)}")
        try:
            await rank.join()
            take_step = self._steps(incarnation, rank)
            for step in range(incarnation.first_step, self.spec.steps):
                began_s = self._plane.loop.time()
                await asyncio.sleep(self._compute_s(chance))
                reducing_s = self._plane.loop.time()
                await take_step(step)
                if number == 0:
                    incarnation.reduced_s.append(self._plane.loop.time() - reducing_s)
                incarnation.done[number] = step + 1
                incarnation.ended_step(number)
                if number == 0:
                    incarnation.step_s.append(self._plane.loop.time() - began_s)
                    incarnation.look()
            await rank.leave()
        except CrashedError:
            pass
        except WindowError:  # it would fail again
            raise
        except InaError as error:
            incarnation.look()
            if not incarnation.error:
                incarnation.error = f"rank {number}: {type(error).__name__}: {error}"
            await self._give_up(rank)
        finally:
            if rank.breach:
                what = f"job {self.name} rank {number}: {rank.breach}"
                self._violate(Violation("window exceeded", what))

    async def _give_up(self, rank: Rank) -> None:
        with contextlib.suppress(InaError):  # it was told already why it ends
            await rank.leave()

    def _compute_s(self, chance: random.Random) -> float:
        straggler = self.spec.straggler
        late_ms = 0.0
        if straggler.mean_ms > 0 and chance.random() < straggler.share:
            late_ms = chance.expovariate(1.0) * straggler.mean_ms
        return (self.spec.compute_ms + late_ms) / 1e3

    def _steps(self, incarnation: Incarnation, rank: Rank) -> Callable[[int], Awaitable[None]]:
        """What one process does in a step."""
        if self._hooked is None:
            return lambda step: self._step(incarnation, rank, step)
        hook = self._hooked.hook(rank.seat.rank, incarnation.first_step)
        return lambda step: self._hooked_step(rank, hook, step)

    async def _hooked_step(self, rank: Rank, hook: Any, step: int) -> None:
        assert self._hooked is not None
        buckets = await self._hooked.step(rank, hook, step)
        pairs = zip(buckets, self._hooked.right(step), strict=True)
        for index, (found, right) in enumerate(pairs):
            self.sums_checked += 1
            if where := difference(found, right, self._plane.fabric.values):
                what = f"step {step} bucket {index} by hook {self.spec.hook}: {where}"
                what = f"job {self.name} rank {rank.seat.rank} {what}"
                self._violate(Violation("wrong sum", what))

    def _gradients(self, step: int, rank: int) -> list[Array]:
        specs = [spec for spec in self.spec.tensors for _ in range(spec.count)]
        return [
            Place(self._seed, self.name, step, index).values(spec, rank)
            for index, spec in enumerate(specs)
        ]

    async def _step(self, incarnation: Incarnation, rank: Rank, step: int) -> None:
        pending = []
        index = 0
        tensors = self.spec.tensors
        for spec in tensors:
            for _ in range(spec.count):
                place = Place(self._seed, self.name, step, index)
                index += 1
                if self.spec.check:
                    values, out = place.given(spec, rank.seat.rank, self.spec.workers), None
                else:
                    values = out = self._shared(spec)
                if spec.kind != "all_reduce":
                    future = rank.submit_of(spec, values)
                elif spec.density is None:
                    future = rank.submit(values, spec.op, out, spec.root, spec.wire)
                else:
                    future = rank.submit_blocks(values, spec.block_elems, spec.op, spec.wire)
                pending.append((place, spec, values, future))
        number = (step - incarnation.first_step) * sum(it.operations * it.count for it in tensors)
        for place, spec, values, future in pending:
            number += spec.operations
            found = await future
            if self.spec.check and found is not None:
                self._judge(place, spec, rank, found, number)
            elif self.spec.check:
                self._judge_input(place, spec, rank, values)

    def _judge(
        self, place: Place, tensor: TensorSpec, rank: Rank, found: Array, number: int
    ) -> None:
        """``number``: in the order of the incarnation's submissions, from 1."""
        values, ticket = self._plane.fabric.values, rank.ticket
        if (place, number) not in self._right:
            is_stream = ticket is not None and modes.of(ticket.mode).is_stream
            lanes = ticket.lanes if ticket is not None and is_stream else 0
            right = place.right(tensor, self.spec.workers, values, number, lanes)
            self._right[place, number] = right
            if len(self._right) > 64:  # those of long ago
                del self._right[next(iter(self._right))]
        self.sums_checked += 1
        right = self._right[place, number]
        if tensor.kind == "reduce_scatter":
            right = right[rank.seat.rank * tensor.elems :][: tensor.elems]
        if where := difference(found, right, values):
            what = (
                f"job {self.name} rank {rank.seat.rank} step {place.step} tensor {place.tensor}"
                f" ({tensor.kind} {tensor.op} of {tensor.elems} {tensor.dtype} by wire"
                f" {tensor.wire}): {where}"
            )
            self._violate(Violation("wrong sum", what))

    def _judge_input(self, place: Place, tensor: TensorSpec, rank: Rank, values: Array) -> None:
        """Of a rank that gets no result: nothing has been written."""
        given = place.given(tensor, rank.seat.rank, self.spec.workers)
        if where := difference(values, given, self._plane.fabric.values):
            what = f"job {self.name} rank {rank.seat.rank} step {place.step}, its input: {where}"
            self._violate(Violation("wrong sum", what))

    def _shared(self, spec: TensorSpec) -> Array:
        """Zeros, reduced in place by all ranks at once: for time alone, without memory for each."""
        if spec not in self._zeros:
            self._zeros[spec] = np.zeros(spec.elems, dtype_of(spec))
        return self._zeros[spec]

    def step_bytes(self) -> int:
        """Of all tensors of a step, of one worker."""
        return sum(spec.elems * spec.count * dtype_of(spec).itemsize for spec in self.spec.tensors)

    def reports(self, scenario: Scenario) -> list[JobReport]:
        """Of each incarnation."""
        return [self._report(one, scenario) for one in self.incarnations]

    def _report(self, one: Incarnation, scenario: Scenario) -> JobReport:
        steps = one.done[0] - one.first_step
        nbytes = steps * self.step_bytes()
        times, reducing_s = sorted(one.step_s), sum(one.reduced_s)
        return JobReport(
            name=self.name,
            workers=self.spec.workers,
            ended=one.error,
            cause=scripted_end(scenario, self.spec, one.ended_s) if one.error else "",
            steps_done=steps,
            began_s=one.began_s,
            took_s=max(one.ended_s - one.began_s, 0.0),
            step_mean_s=sum(times) / len(times) if times else 0.0,
            step_p99_s=times[min(len(times) - 1, int(0.99 * len(times)))] if times else 0.0,
            tensor_bytes=nbytes,
            goodput_gbit_s=nbytes * 8e-9 / reducing_s if reducing_s else 0.0,
            window_packets=one.window,
            in_flight_limit_min=one.least_limit if one.window else 0,
            slots_used_max=one.most_in_flight,
            packets_sent=one.total("sent"),
            resends_lost=one.total("lost"),
            resends_overtaken=one.total("overtaken"),
            resends_probes=one.total("probes"),
            ecn_marked=one.total("marked"),
        )
