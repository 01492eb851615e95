"""A job's workers around one switch in the virtual network: the core and the P4 program that ship.

Time is the network's, so a seed replays exactly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ina._native.congestion import Choice
from ina._native.host import Framing, VerifyMode
from ina.extension import sim as native
from ina.fabric.shapes import star
from ina.host.arrays import VALUE_TYPES
from ina.protocol.coding import WHOLE, Coding
from ina.protocol.collective import REDUCTIONS, Collective
from ina.sim.fabric import VirtualFabric
from ina.sim.topology import laid
from ina.sim.ways import Way
from tests.worlds.virtual.cores import EPOCH, JOB, MS, SECOND, Array, worker_config
from tests.worlds.virtual.hand_job import admit, setup_on

FOREVER_NS = 2**63 - 1
FAILURES = (
    native.WorkerEvent.STALLED,
    native.WorkerEvent.MISMATCH,
    native.WorkerEvent.CORRUPTED,
)


def scattered(
    loss: float = 0.0,
    duplication: float = 0.0,
    least_ns: int = 20_000,
    most_ns: int = 60_000,
) -> Way:
    """Nothing queues; a packet takes any time between the bounds, whatever others take."""
    return Way(
        bits_per_s=0,
        delay_ns=least_ns,
        loss=loss,
        duplication=duplication,
        reordering=float(most_ns > least_ns),
        reordering_ns=most_ns - least_ns,
    )


def late(share: float, loss: float = 0.0, duplication: float = 0.0) -> Way:
    """Packets keep their order, but for some that come up to 50 ms later: their chunk is over."""
    return Way(
        bits_per_s=0,
        delay_ns=20_000,
        jitter_ns=40_000,
        loss=loss,
        duplication=duplication,
        reordering=share,
        reordering_ns=50 * MS,
    )


def even(delay_ns: int, loss: float = 0.0) -> Way:
    """Each packet takes the same time."""
    return Way(bits_per_s=0, delay_ns=delay_ns, loss=loss)


ROUGH: dict[str, Any] = {
    "way": scattered(loss=0.1, duplication=0.1, most_ns=2_000_000),
    "back": late(0.05, loss=0.1, duplication=0.1),
}


class Star:
    """``workers`` around a switch, each with a cable of its own. Its memory goes when it does."""

    def __init__(
        self,
        workers: int,
        *,
        slots: int = 16,
        values: int = 64,
        way: Way | None = None,
        back: Way | None = None,
        seed: int = 0,
        in_flight: Sequence[int] | None = None,
        shares: Sequence[int] | None = None,
        window: Choice | None = None,
        trains: bool = False,
        first_seq: int = 0,
        keep_results: bool = False,
        verify: VerifyMode | Sequence[VerifyMode] = VerifyMode.OFF,
        check_key: bytes = bytes(16),
        framing: Framing | None = None,
    ) -> None:
        """``way``: from each worker; ``back``: to it, as from it unless given.

        ``in_flight``, ``shares``: of each worker; the former of all its shares together, 0: W.
        """
        self.slots, self.values = slots, values
        self._memory = contextlib.ExitStack()
        topology = laid(star(workers), way or scattered(), back)
        self.fabric = self._memory.enter_context(VirtualFabric(topology, seed=seed, values=values))
        self.network = self.fabric.network
        modes = [verify] * workers if isinstance(verify, VerifyMode) else verify
        admit(self.fabric, topology.hosts, slots, number=JOB, epoch=EPOCH)
        self.workers: list[native.Worker] = []
        for rank, host in enumerate(topology.hosts):
            setup = setup_on(self.fabric, host)
            setup.max_in_flight = in_flight[rank] if in_flight else 0
            setup.shares = shares[rank] if shares else 1
            setup.trains = trains
            config = worker_config(
                *(rank, workers, slots, values),
                first_seq=first_seq,
                keep_results=keep_results,
                verify=modes[rank],
                check_key=check_key,
            )
            config.framing = framing or Framing()
            name = f"worker/{rank}"
            choice = window or Choice()
            self.workers.append(
                self.network.add_worker(self.fabric.hosts[host], name, setup, config, choice)
            )
        self.up = [self.fabric.ports[f"{host}>s1"] for host in topology.hosts]
        self.down = [self.fabric.ports[f"s1>{host}"] for host in topology.hosts]
        self.done: list[list[int]] = [[] for _ in range(workers)]
        """By rank: tensors, in the order in which they were complete."""
        self.failed: list[native.WorkerEvent | None] = [None] * workers
        """By rank: why it has stopped."""
        self._submitted: list[tuple[Array, Array]] = []  # what is read, what is written

    @property
    def now_ns(self) -> int:
        return self.network.now_ns

    @property
    def lost(self) -> int:
        """Packets, both ways, and those that found no room."""
        counts = [port.counters for port in (*self.up, *self.down)]
        return sum(count.lost_packets + count.full_packets for count in counts)

    def submit(
        self,
        rank: int,
        tensor: int,
        array: Array,
        out: Array,
        op: str = "sum",
        coding: Coding = WHOLE,
    ) -> None:
        self._submitted.append((array, out))
        what = coding.of(Collective(VALUE_TYPES[array.dtype], array.size, REDUCTIONS[op]))
        begun = self.workers[rank].submit(array.ctypes.data, out.ctypes.data, what)
        assert begun.id == tensor
        self._listen()

    def run(self, tensors: int, limit_s: float = 600.0) -> None:
        """Until every worker has completed so many tensors in all."""
        self.run_out(tensors, limit_s)
        assert self.failed == [None] * len(self.workers)
        assert min(len(done) for done in self.done) >= tensors, "there is no end in sight"

    def run_out(self, tensors: int, limit_s: float = 600.0) -> None:
        """Until each worker has completed so many tensors, or has stopped, or for so long."""
        limit_ns = round(limit_s * SECOND)
        while any(
            len(done) < tensors and failed is None
            for done, failed in zip(self.done, self.failed, strict=True)
        ):
            if self._run(limit_ns):
                return

    def run_until(self, at_ns: int) -> None:
        """To a time, whatever is done by then."""
        while not self._run(at_ns):
            pass

    def step(self) -> None:
        """To the next time at which something happens, if anything does."""
        if self.network.next_ns < FOREVER_NS:
            self._run(self.network.next_ns)

    def all_reduce(self, parts: Sequence[Array], op: str = "sum") -> list[Array]:
        """Reduces a tensor over an idle network; returns each rank's result."""
        outs = [np.empty_like(part) for part in parts]
        done = len(self.done[0])
        for rank, part in enumerate(parts):
            self.submit(rank, done + 1, part, outs[rank], op)
        self.run(done + 1)
        return outs

    def _run(self, until_ns: int) -> bool:
        is_there = self.network.run(until_ns)
        self._listen()
        return is_there

    def _listen(self) -> None:
        for _, worker, event, tensor in self.network.take_notices():
            rank = self.workers.index(worker)
            if event in FAILURES:
                self.failed[rank] = event
            else:
                self.done[rank].append(tensor)
