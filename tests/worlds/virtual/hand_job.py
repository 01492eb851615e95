"""A job without a controller: entries and workers as they are, in a fabric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ina.controller.job import Job, JobSpec
from ina.controller.switches.plan import JobPlan, own_address, plan_job
from ina.extension import congestion
from ina.extension import host as host_native
from ina.extension import sim as native
from ina.host.trees import native_peer
from ina.protocol.collective import Collective
from ina.protocol.peer import Peer
from ina.protocol.spec import UDP_PORT as SWITCH_UDP_PORT
from ina.sim.fabric import VirtualFabric
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from ina.trees.tree import single

Values = np.ndarray[tuple[int], np.dtype[np.int32]]
INT32 = 0
UDP_PORT = 4000
LIMIT_NS = 60 * 10**9


def admit(
    fabric: VirtualFabric, hosts: Sequence[str], slots: int, *, number: int = 1, epoch: int = 7
) -> None:
    """A job with a rank on each of these hosts, which are at switch ``s1``, at its first slots."""
    address = fabric.topology.addresses["s1"]
    fabric.switches["s1"].insert([own_address(int(address))])
    for items in _plan(fabric, hosts, SlotRange(0, slots, slots), number, epoch).stages:
        fabric.switches["s1"].insert(items)


class OtherMapping:
    """Another mapping of such a job, beside the one of an earlier epoch."""

    def __init__(
        self,
        fabric: VirtualFabric,
        hosts: Sequence[str],
        memory: SlotRange,
        *,
        number: int,
        epoch: int,
    ) -> None:
        self._switch = fabric.switches["s1"]
        plan = _plan(fabric, hosts, memory, number, epoch)
        former = _plan(fabric, hosts, memory, number, epoch - 1)
        self._items, self._former = plan.beside(former).items, former.beside(plan).items
        self._switch.insert(self._items)

    def remove_former(self) -> None:
        """Those of the epoch before."""
        self._switch.delete(self._former)


def _plan(
    fabric: VirtualFabric, hosts: Sequence[str], memory: SlotRange, number: int, epoch: int
) -> JobPlan:
    topology = fabric.topology
    members = {
        rank: Endpoint(Peer(topology.addresses[name], UDP_PORT), topology.port_towards("s1", name))
        for rank, name in enumerate(hosts)
    }
    placed = Mapping(epoch, (number,), forest_of(single("s1", len(hosts))), {"s1": memory}, 1)
    job = Job(JobSpec("job", len(hosts)), number, 0.0, placed, epoch=epoch, members=members)
    return plan_job(job, "s1")


def setup_on(fabric: VirtualFabric, host: str) -> native.WorkerSetup:
    """Of a member's worker."""
    addresses = fabric.topology.addresses
    return native.WorkerSetup(
        own=native_peer(Peer(addresses[host], UDP_PORT)),
        to=native_peer(Peer(addresses["s1"], SWITCH_UDP_PORT)),
    )


def add_workers(
    fabric: VirtualFabric,
    hosts: Sequence[str],
    slots: int = 512,
    window: congestion.Choice | None = None,
) -> list[native.Worker]:
    """One on each of these hosts, of a job of theirs."""
    admit(fabric, hosts, slots)
    return [
        fabric.network.add_worker(
            fabric.hosts[name],
            f"worker/{rank}",
            setup_on(fabric, name),
            host_native.WorkerConfig(
                job=1,
                epoch=7,
                rank=rank,
                world_size=len(hosts),
                slots=slots,
                values_per_packet=fabric.values,
                stall_timeout_ns=30 * 10**9,
                rto=host_native.RtoLimits(),
            ),
            window or congestion.Choice(),
        )
        for rank, name in enumerate(hosts)
    ]


def reduce_all(fabric: VirtualFabric, workers: Sequence[native.Worker], elems: int) -> list[Values]:
    """Numbers of their own are summed; returns what each worker has then, once all have it."""
    inputs, outputs = buffers(len(workers), elems)
    run_all(fabric, workers, inputs, outputs)
    for sums in outputs:
        np.testing.assert_array_equal(sums, sum(inputs))
    return outputs


def buffers(workers: int, elems: int) -> tuple[list[Values], list[Values]]:
    """What each has, and where its sums go."""
    draw = np.random.default_rng(0)
    inputs = [draw.integers(-1000, 1000, elems, np.int32) for _ in range(workers)]
    return inputs, [np.empty_like(values) for values in inputs]


def run_all(
    fabric: VirtualFabric,
    workers: Sequence[native.Worker],
    inputs: Sequence[Values],
    outputs: Sequence[Values],
) -> None:
    """Until all are done."""
    for worker, values, sums in zip(workers, inputs, outputs, strict=True):
        worker.submit(values.ctypes.data, sums.ctypes.data, Collective(INT32, len(values)))
    told = 0
    while told < len(workers):
        assert not fabric.network.run(fabric.network.now_ns + LIMIT_NS), "it does not end"
        for _, worker, event, _ in fabric.network.take_notices():
            assert event is native.WorkerEvent.DONE, worker.name
            told += 1
