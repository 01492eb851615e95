"""Jobs of mode shared on a soft switch in this process, and their aggregators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from ina.congestion import Congestion
from ina.controller.embedded import DATA_PORT, Embedded
from ina.host import Session, WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch

DEADLINE_S = 60.0


VALUES = 64


JOB_SLOTS = 64


# So that no slot ages here. Up to this age of the switch's clock, which wraps after 72 minutes,
# slots that nobody has used count as taken.
LONG_AGE_US = int(2 * DEADLINE_S * 1e6)
"""Nothing comes of age in a test: all that it waits for is over before, or it fails."""


@contextmanager
def services(shared_slots: int, *, loss: float = 0.0, **more: Any) -> Iterator[Embedded]:
    settings = {
        "switch": {"shared_slots": shared_slots, **more.pop("switch", {})},
        "tenants": more.pop("tenants", {}),
    }
    with Embedded(
        values=VALUES, slots=JOB_SLOTS, mode="shared", loss_rate=loss, config=settings, **more
    ) as embedded:
        yield embedded


def input_of(job: int, rank: int, step: int, elems: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.random.default_rng([job, rank, step]).integers(-(2**31), 2**31, elems, np.int32)


def run_jobs(
    embedded: Embedded,
    sizes: Mapping[int, int],
    *,
    steps: int = 3,
    elems: int = 6000,
    priorities: Mapping[int, int] | None = None,
    window: str = Congestion().algorithm,
    between: Callable[[int, int, int], None] = lambda job, rank, step: None,
) -> None:
    """Jobs with so many workers each, at once; every sum is what int32 sums are, on every rank."""

    def work(job: int, rank: int, size: int) -> None:
        with Session.join(
            *(embedded.controller_addr, f"job{job}", rank, size),
            options=WorkerOptions(
                transport="udp",
                mode="shared",
                priority=(priorities or {}).get(job, 0),
                congestion=Congestion(window),
                timeout_s=DEADLINE_S,
                op_timeout_s=DEADLINE_S,
            ),
        ) as session:
            for step in range(steps):
                found = session.all_reduce(input_of(job, rank, step, elems))
                parts = (input_of(job, other, step, elems) for other in range(size))
                wanted = np.sum(list(parts), axis=0, dtype=np.int32)
                assert np.array_equal(found, wanted), (job, rank, step)
                between(job, rank, step)

    with ThreadPoolExecutor(sum(sizes.values())) as pool:
        started = [
            pool.submit(work, job, rank, size)
            for job, size in sizes.items()
            for rank in range(size)
        ]
        for one in started:
            one.result(2 * DEADLINE_S)


class Restart:
    """Ends a switch's process once, as a power cut does, and starts another at its address."""

    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded
        self._thread = threading.Thread(target=self._run)
        self._once = threading.Lock()

    def between(self, job: int, rank: int, step: int) -> None:
        """After the first sum that any rank has, while others are at theirs."""
        if self._once.acquire(blocking=False):
            self._thread.start()

    def _run(self) -> None:
        switch = self._embedded.switch
        host, udp_port = switch.udp_address(DATA_PORT)
        switch.stop()
        port = UdpPort(DATA_PORT, host, udp_port)
        self._embedded.switch = SoftSwitch([port], grpc_addr=switch.grpc_addr)
        self._embedded.switch.start()

    def wait(self) -> None:
        """Until the other one runs."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()


class Operator:
    """Changes the job, and looks what it has."""

    def __init__(self, stub: OperatorStub) -> None:
        self._stub = stub

    def change(self, slots: int, mode: str) -> None:
        request = pb2.ResizeJobRequest(name="job0", slots=slots, mode=mode)
        self._stub.ResizeJob(request, timeout=DEADLINE_S)

    def job(self) -> pb2.ShowJobReply:
        return self._stub.ShowJob(pb2.ShowJobRequest(name="job0"), timeout=DEADLINE_S)

    def has(self, slots: int, mode: str) -> bool:
        job = self.job().job
        assert job.state == "running", job
        return not job.HasField("remapping") and (job.slots, job.mode) == (slots, mode)

    def used(self) -> int:
        """Slots of any job that the switch has."""
        return self._stub.ShowSwitch(pb2.ShowSwitchRequest(), timeout=DEADLINE_S).slots_used


class Among(Embedded):
    """A switch and a controller that has these aggregators."""

    def __init__(self, them: Sequence[SoftSwitch], **more: Any) -> None:
        super().__init__(**more)
        self._them = them

    def _aggregators(self) -> list[dict[str, Any]]:
        places = [(it.grpc_addr, *it.udp_address(DATA_PORT)) for it in self._them]
        keys = ("name", "grpc_addr", "data_host", "data_udp_port", "data_port")
        return [
            dict(zip(keys, (f"agg{number}", *place, DATA_PORT), strict=True))
            for number, place in enumerate(places)
        ]


@contextmanager
def aggregator() -> Iterator[SoftSwitch]:
    with SoftSwitch([UdpPort(DATA_PORT, "127.0.0.1")], grpc_addr="127.0.0.1:0") as switch:
        yield switch
