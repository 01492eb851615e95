"""The controller's gRPC messages, in this process and in a time of its own: no socket, no switch.

A record is a request of the method of that number. Calls that wait go on while the next come, as
from many clients; at the end their clients hang up, and the operator evicts what there is.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError, Message

from fuzz.doors.controller_switch import ObedientSwitch
from fuzz.doors.promise import promise
from fuzz.doors.virtual_loop import VirtualLoop
from fuzz.records import read_records
from ina.controller.config import make_config
from ina.controller.config.topology import fabric_of
from ina.controller.jobs import tokens
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.outages import StoredOutages
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import StaticPool
from ina.controller.service.endpoints import DataPath
from ina.controller.service.operators import OperatorService
from ina.controller.service.switchboard import Switchboard
from ina.controller.service.workers import WorkerService
from ina.controller.slots.memory import Memory
from ina.controller.store import IN_MEMORY, open_store
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.switch import Switch
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.windows.job_windows import JobWindows
from ina.rpc import controller_pb2 as pb2

SLOTS, JOB_SLOTS = 64, 16
LEASE_S = 10.0
PAUSE_S = 0.3
"""Between one call and the next."""
MY_KEY = bytes(32)
"""Stands for the member key that the caller was given: an input cannot know it."""
REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.UNAVAILABLE,
}
PATHS = [
    f"/{service.full_name}/{method.name}"
    for service in pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
"""By the number in a record."""
REQUESTS: list[type[Message]] = [
    getattr(pb2, method.input_type.name)
    for service in pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


class Aborted(Exception):  # noqa: N818 (what a context raises is not an error of ours)
    """A call's end, as gRPC has it."""


class Context:
    """What a call's servicer needs of gRPC."""

    def peer(self) -> str:
        """Who calls."""
        return "ipv4:127.0.0.1:1"

    def time_remaining(self) -> float:
        """No caller waits for a former job."""
        return 0.0

    async def send_initial_metadata(self, _metadata: object) -> None:
        """Nobody looks at it."""

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        """Ends the call. Its code and its words must be of use to the caller."""
        promise(code in REFUSALS, f"a caller's mistake is no bug of ours: {code} {details[:200]}")
        promise(details and details.isprintable(), f"a refusal is one line: {details[:200]!r}")
        raise Aborted


class _Details:
    """What a generic handler asks of a call."""

    def __init__(self, path: str) -> None:
        self.method = path
        self.invocation_metadata = ()


class Bench:
    """A controller with one switch, as it is when it becomes primary. In a running loop."""

    def __init__(self) -> None:
        config = make_config({}, "the door")
        clock = asyncio.get_running_loop().time
        self.writer = ObedientSwitch()
        (switch_config,) = config.switches
        capacity = Capacity(StaticPool(SLOTS, JOB_SLOTS))
        self.registry = Registry(
            *({switch_config.name: capacity}, EpochCounter(0), range(1, 9)),
            room=lambda registry: Memory(config.jobs, registry, clock=clock),
        )
        assert isinstance(self.registry.room, Memory)
        self.memory = self.registry.room
        switch = Switch(switch_config, self.writer, capacity)
        self.store = open_store(IN_MEMORY)
        record = Record(self.store.claim("door"))
        self.coordinator = Coordinator(self.registry, [switch], record, clock=clock)
        self.detector = FailureDetector(self.coordinator, LEASE_S, clock=clock)
        data = {switch_config.name: DataPath(config, switch_config, int)}
        fabric = fabric_of(config)
        windows = JobWindows(self.coordinator, fabric, config, clock=clock)
        self.controller = WorkerService(self.coordinator, self.detector, data, windows, self.memory)
        outages = StoredOutages(fabric, record, self.coordinator.events)
        self.operator = OperatorService(
            self.coordinator, self.detector, self.memory, outages, windows
        )
        self.switchboard = Switchboard(pb2.ShowControllerReply, lambda: "")
        self.switchboard.serve(self)
        self._calls: set[asyncio.Task[None]] = set()

    async def run(self, data: bytes) -> None:
        """One input."""
        self.detector.start()
        try:
            for number, request in read_records(data):
                call = asyncio.ensure_future(self._call(number % len(PATHS), request))
                self._calls.add(call)
                await asyncio.sleep(PAUSE_S)
                self._look()
        finally:
            await self._hang_up()
            await self._clear()
            await self.detector.close()
            await self.coordinator.close()
            self.store.close()

    async def _call(self, number: int, request: bytes) -> None:
        handler: Any = self.switchboard.service(_Details(PATHS[number]))  # type: ignore[arg-type]
        try:
            message = handler.request_deserializer(request)
        except DecodeError:
            return  # gRPC answers that
        self._give_key(message)
        try:
            if handler.response_streaming:
                async for answer in handler.unary_stream(message, Context()):
                    handler.response_serializer(answer)
            else:
                handler.response_serializer(await handler.unary_unary(message, Context()))
        except Aborted:
            pass

    def _give_key(self, message: Any) -> None:
        if getattr(message, "member_key", b"") != MY_KEY:
            return
        for job in self.registry:
            if job.name == message.name:
                message.member_key = tokens.member_key(job.key_seed, job.epoch, message.rank)

    def _look(self) -> None:
        """What holds at any time."""
        for call in [call for call in self._calls if call.done()]:
            self._calls.remove(call)
            call.result()
        jobs = list(self.registry)
        numbers = [number for job in jobs for number in job.numbers]
        promise(len(set(numbers)) == len(numbers), "each job has its own number")
        used = [slot for job in jobs for slot in _slots(job)]
        promise(len(set(used)) == len(used), "no slot is two jobs'")
        promise(all(0 <= slot < SLOTS for slot in used), "slots are of the switch")

    async def _hang_up(self) -> None:
        for call in self._calls:
            call.cancel()
        ended = await asyncio.gather(*self._calls, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _clear(self) -> None:
        for job in self.coordinator.jobs():
            with contextlib.suppress(Aborted):  # it has ended by itself
                await self.operator.EvictJob(
                    pb2.EvictJobRequest(name=job.name), cast(Any, Context())
                )
        await asyncio.sleep(PAUSE_S)
        promise(not self.coordinator.jobs(), "every job can be evicted")
        promise(self.registry.slots_used() == 0, "a job that has ended has no slots")
        promise(not self.writer.items, "nor entries on the switch")


def _slots(job: Any) -> set[int]:
    """While it changes, of both its mappings; they may share some."""
    taken = [its for mapping in job.mappings for its in mapping.memory.values()]
    return {slot for its in taken for slot in range(its.first, its.end)}


def enter(data: bytes) -> None:
    """One input, at a controller without jobs."""

    async def scenario() -> None:
        await Bench().run(data)

    loop = VirtualLoop()
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
