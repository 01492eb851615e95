"""The gRPC service of ``ina/rpc/controller.proto``: typed errors become status codes."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import TypeVar

import grpc
import grpc.aio

from ina.controller.coordinator import Coordinator
from ina.controller.errors import (
    JobAbortedError,
    JobConflictError,
    JobRequestError,
    JoinTimeoutError,
    NoRoomError,
    SwitchError,
    UnknownJobError,
)
from ina.controller.jobs import Endpoint, Job
from ina.controller.show import show_switch
from ina.controller.switch_writer import SwitchWriter
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc

_log = logging.getLogger(__name__)

STATUS_CODES: dict[type[InaError], grpc.StatusCode] = {
    JobRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    JobConflictError: grpc.StatusCode.ALREADY_EXISTS,
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    NoRoomError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    JoinTimeoutError: grpc.StatusCode.DEADLINE_EXCEEDED,
    JobAbortedError: grpc.StatusCode.ABORTED,
    SwitchError: grpc.StatusCode.UNAVAILABLE,
}

MAX_JOIN_TIMEOUT_S = 3600.0
FORMER_JOB_WAIT_S = 10.0
"""How long CreateJob waits for the last workers of a former job of the same name to leave."""

_T = TypeVar("_T")
_Req = TypeVar("_Req")
_Rep = TypeVar("_Rep")


@dataclass(frozen=True)
class DataPath:
    """How workers reach the switch."""

    host: str
    """IPv4 address that contributions go to."""
    udp_port: int
    values_per_packet: int
    default_port: int
    """The switch's port number of workers that neither say theirs nor are configured."""
    endpoints: dict[IPv4Address, tuple[int, int | None]]
    """By worker's address: the switch's port number and the worker's MAC (None: derived)."""


class ControllerService(rpc.ControllerServicer):
    """Checks requests, and leaves the rest to the coordinator."""

    def __init__(
        self, coordinator: Coordinator, writer: SwitchWriter, data: DataPath, program: str
    ) -> None:
        self._coordinator = coordinator
        self._writer = writer
        self._data = data
        self._program = program

    async def CreateJob(  # noqa: N802 (gRPC's name)
        self,
        request: pb2.CreateJobRequest,
        context: grpc.aio.ServicerContext[pb2.CreateJobRequest, pb2.CreateJobReply],
    ) -> pb2.CreateJobReply:
        """Creates the job, or finds it."""
        remaining_s = context.time_remaining()
        wait_s = FORMER_JOB_WAIT_S
        if remaining_s is not None:  # leave time for the answer
            wait_s = min(wait_s, 0.8 * remaining_s)
        job = await _answer(
            context,
            self._coordinator.create(request.name, request.world_size, request.slots, wait_s),
        )
        return pb2.CreateJobReply(
            job=job.number,
            switch_host=self._data.host,
            switch_udp_port=self._data.udp_port,
            values_per_packet=self._data.values_per_packet,
            slots=job.memory.slots,
        )

    async def Join(  # noqa: N802
        self,
        request: pb2.JoinRequest,
        context: grpc.aio.ServicerContext[pb2.JoinRequest, pb2.JoinReply],
    ) -> pb2.JoinReply:
        """Adds a worker and waits for the others."""
        job = await _answer(context, self._join(request))
        return pb2.JoinReply(
            job=job.number, epoch=job.epoch, world_size=job.world_size, slots=job.memory.slots
        )

    async def Leave(  # noqa: N802
        self,
        request: pb2.LeaveRequest,
        context: grpc.aio.ServicerContext[pb2.LeaveRequest, pb2.LeaveReply],
    ) -> pb2.LeaveReply:
        """Removes a worker."""
        await _answer(context, self._coordinator.leave(request.name, request.rank, request.epoch))
        return pb2.LeaveReply()

    async def ListJobs(  # noqa: N802
        self,
        request: pb2.ListJobsRequest,
        context: grpc.aio.ServicerContext[pb2.ListJobsRequest, pb2.ListJobsReply],
    ) -> pb2.ListJobsReply:
        """Every job and its ranks."""
        return pb2.ListJobsReply(
            jobs=[
                pb2.Job(
                    name=job.name,
                    job=job.number,
                    epoch=job.epoch,
                    world_size=job.world_size,
                    joined=sorted(job.members),
                    first_slot=job.memory.first,
                    slots=job.memory.slots,
                    state=job.state.value,
                )
                for job in self._coordinator.jobs()
            ]
        )

    async def ShowSwitch(  # noqa: N802
        self,
        request: pb2.ShowSwitchRequest,
        context: grpc.aio.ServicerContext[pb2.ShowSwitchRequest, pb2.ShowSwitchReply],
    ) -> pb2.ShowSwitchReply:
        """What the switch has, read back."""
        return await _answer(context, self.show())

    async def show(self) -> pb2.ShowSwitchReply:
        """The reply of ShowSwitch; raises :class:`SwitchError`."""
        return await show_switch(self._coordinator, self._writer, self._program)

    async def _join(self, request: pb2.JoinRequest) -> Job:
        where = f"job {request.name!r} rank {request.rank}"
        timeout_s = request.timeout_s
        if not (math.isfinite(timeout_s) and 0 < timeout_s <= MAX_JOIN_TIMEOUT_S):
            raise JobRequestError(
                f"{where}: timeout {timeout_s:g} s: want more than 0, at most"
                f" {MAX_JOIN_TIMEOUT_S:g}"
            )
        endpoint = self._endpoint(request, where)
        return await self._coordinator.join(request.name, request.rank, endpoint, timeout_s)

    def _endpoint(self, request: pb2.JoinRequest, where: str) -> Endpoint:
        try:
            address = IPv4Address(request.host)
        except AddressValueError:
            raise JobRequestError(
                f"{where}: host {request.host!r} is not an IPv4 address"
            ) from None
        if address.is_unspecified or address.is_multicast:
            raise JobRequestError(f"{where}: host {address} is not one worker's address")
        if not 0 < request.udp_port < 1 << 16:
            raise JobRequestError(f"{where}: UDP port {request.udp_port} is not in 1..65535")
        port, mac = self._data.endpoints.get(address, (self._data.default_port, None))
        return Endpoint(address, request.udp_port, request.switch_port or port, mac)


async def _answer(context: grpc.aio.ServicerContext[_Req, _Rep], work: Awaitable[_T]) -> _T:
    """The result of ``work``; its error ends the call with a status and one line."""
    try:
        return await work
    except InaError as error:
        code = STATUS_CODES.get(type(error), grpc.StatusCode.UNKNOWN)
        await context.abort(code, str(error))
    except Exception as error:
        _log.exception("a call failed")
        await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")
    raise AssertionError("abort raises")
