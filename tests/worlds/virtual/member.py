"""The rules of a membership without a network: a controller by hand, and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import grpc

from ina.extension import sim as native
from ina.host.calls import Credentials
from ina.host.member.client import CallError, ControllerClient, Trouble
from ina.host.member.core import MemberCore
from ina.host.member.join import Grant
from ina.host.member.latch import FailureLatch, Voice
from ina.host.options import WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.sim.links import SimShared
from ina.sim.loop import VirtualLoop
from ina.sim.process import Process
from ina.sim.task_driver import TaskDriver
from tests.worlds.fakes.tickets import direct_ticket

LEASE_S, HEARTBEAT_S = 10.0, 2.0
AWAY = CallError(grpc.StatusCode.UNAVAILABLE, "connection refused")
TICKET = direct_ticket("j", 1, 1, 0, 3, 16, 64, "127.0.0.1", 17760)


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with VirtualLoop(native.Network(1)) as loop:
        loop.run_until_complete(work())


def now_s() -> float:
    return asyncio.get_running_loop().time()


class HandStream:
    """Begins unless it is told not to; its events come from a queue, None ends it."""

    def __init__(self, *, begins: bool = True) -> None:
        self.events: asyncio.Queue[pb2.JobEvent | None] = asyncio.Queue()
        self._begins = begins

    async def begins(self) -> bool:
        return self._begins

    async def next(self) -> pb2.JobEvent | None:
        return await self.events.get()

    def cancel(self) -> None:
        self.events.put_nowait(None)


class HandWire:
    """Answers each call by ``answer``, from which errors are raised; notes what was asked."""

    addresses: Sequence[str] = ("c1:17700",)

    def __init__(self) -> None:
        self.asked: list[tuple[float, str, Any]] = []
        self.error: CallError | None = None
        self.refuses = False
        self.streams: list[HandStream] = []
        self.stream_begins = True
        self.pinged_s = 0.0

    async def call(self, way: int, method: str, request: Any, timeout_s: float) -> Any:
        self.asked.append((now_s(), method, request))
        await asyncio.sleep(0.001)
        if self.error is not None:
            raise self.error
        return {"Heartbeat": pb2.HeartbeatReply, "Leave": pb2.LeaveReply}[method]()

    def watch(self, way: int, request: pb2.WatchRequest) -> HandStream:
        self.streams.append(HandStream(begins=self.stream_begins))
        return self.streams[-1]

    async def trouble(self, way: int) -> Trouble | None:
        return None

    async def is_refused(self, way: int) -> bool:
        return self.refuses

    def ping(self, lease_s: float) -> None:
        self.pinged_s = lease_s

    def close(self) -> None:
        pass

    def count(self, method: str) -> int:
        return sum(asked == method for _, asked, _ in self.asked)


class HandEngine:
    """A transport of which nothing is known but what a test says."""

    def __init__(self) -> None:
        self.refused = self.in_flight = self.spent = 0
        self.found_mismatch: Any = None
        self.found_corruption: Any = None
        self.stall: Any = None
        self.failed_s: list[float] = []
        self.may_freeze = True

    def fail(self) -> None:
        self.failed_s.append(now_s())

    def freeze(self) -> bool:
        return self.may_freeze

    def lanes(self) -> Any:
        return SimpleNamespace(
            epoch=1, seqs=[], waiting=b"", in_flight=self.in_flight, silent_ns=0, oldest_seq=0,
            oldest_waited_ns=0, oldest_operation=None,
        )  # fmt: skip

    def stats(self) -> Any:
        names = (
            "tensors_submitted tensors_done chunks_done retransmissions losses spurious probes"
            " packets_sent packets_received corrupted exponent_rounds last_seq mismatched last"
            " ecn_marked timeouts"
        )
        worker = SimpleNamespace(**dict.fromkeys(names.split(), 0))
        rhythm = SimpleNamespace(busy_ns=0, tail_ns=0, step_operations=0)
        return SimpleNamespace(
            worker=worker, rhythm=rhythm, srtt_ns=0, shortest_ns=0, mean_ns=0, window=8,
            in_flight_limit=8, in_flight=self.in_flight, refused=self.refused,
            refused_since_result=self.refused, spent=self.spent,
        )  # fmt: skip

    def submissions(self) -> list[Any]:
        return []

    def mismatch(self) -> Any:
        return self.found_mismatch

    def corruption(self) -> Any:
        return self.found_corruption

    def failure(self) -> Any:
        return self.stall


class Member:
    """Rank 0 of three, to be made and started within virtual time."""

    def __init__(self, options: WorkerOptions | None = None, *, node: Any = None) -> None:
        self.wire, self.engine = HandWire(), HandEngine()
        self.driver = TaskDriver(Process("member"))
        options = options or WorkerOptions()
        voice = Voice(self.driver.flag(), self.driver.flag())
        engine: Any = self.engine
        self.latch = FailureLatch(
            TICKET, engine, self.driver, options.on_failure, node=node, voice=voice
        )
        link: Any = SimpleNamespace(is_shm=False)
        grant: Grant[Any] = Grant(
            TICKET, link, Credentials("j", 0, 1, b""), window=0, lease_s=LEASE_S,
            heartbeat_s=HEARTBEAT_S, options=options, node=node,
        )  # fmt: skip
        windows = SimpleNamespace(state=lambda stats: pb2.WindowState())
        remapping: Any = SimpleNamespace(windows=windows, epoch=0)
        client = ControllerClient(self.wire, "p")
        self.core = MemberCore(
            *(grant, client, engine, self.latch, remapping),
            *(SimShared(), self.driver, voice),
        )

    async def until_settled(self) -> float:
        """When the session is told that the job cannot go on."""
        await self.driver.until_set(self.latch.is_settled)
        return now_s()

    def tell(self, **event: Any) -> None:
        self.wire.streams[-1].events.put_nowait(pb2.JobEvent(**event))


def started(**options: Any) -> Member:
    member = Member(WorkerOptions(**options))
    member.core.start()
    return member
