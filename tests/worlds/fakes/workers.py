"""Workers that only talk to the controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import ControllerStub, OperatorStub
from tests.worlds.fakes.switches import of_jobs

CALL_TIMEOUT_S = 30.0
WATCH_TIMEOUT_S = 120.0


class Workers:
    """A client of one controller; each join runs in a thread of its own.

    It keeps the member keys that joins were answered with, for the calls that need them.
    """

    def __init__(
        self, stub: ControllerStub, operator: OperatorStub, pool: ThreadPoolExecutor
    ) -> None:
        self.stub = stub
        self.operator = operator
        self.keys: dict[tuple[str, int, int], bytes] = {}
        """By (job name, epoch, rank)."""
        self._pool = pool

    def create(
        self,
        name: str,
        world_size: int,
        slots: int = 0,
        *,
        tenant: str = "",
        priority: int = 0,
        token: str = "",
        verify: str = "",
        queue_s: float = 0.0,
    ) -> pb2.CreateJobReply:
        request = pb2.CreateJobRequest(
            name=name,
            world_size=world_size,
            slots=slots,
            tenant=tenant,
            priority=priority,
            token=token,
            wire_version=VERSION,
            verify=verify,
            queue_s=queue_s,
        )
        return self.stub.CreateJob(request, timeout=CALL_TIMEOUT_S)

    def join(
        self,
        name: str,
        rank: int,
        *,
        host: str = "127.0.0.1",
        udp_port: int | None = None,
        timeout_s: float = 20.0,
        token: str = "",
        switch_port: int = 0,
        takes_shared_results: bool = False,
        process: str = "",
    ) -> Future[pb2.JoinReply]:
        request = pb2.JoinRequest(
            name=name,
            rank=rank,
            host=host,
            udp_port=4000 + rank if udp_port is None else udp_port,
            timeout_s=timeout_s,
            token=token,
            switch_port=switch_port,
            takes_shared_results=takes_shared_results,
            process=process,
        )
        return self._pool.submit(self._join, request)

    def run_job(
        self,
        name: str,
        world_size: int,
        first_udp_port: int = 4000,
        *,
        takes_shared_results: bool = False,
        tenant: str = "",
    ) -> pb2.JoinReply:
        """Creates a job and joins all its ranks."""
        self.create(name, world_size, tenant=tenant)
        joins = [
            self.join(
                name,
                rank,
                udp_port=first_udp_port + rank,
                takes_shared_results=takes_shared_results,
            )
            for rank in range(world_size)
        ]
        replies = [join.result() for join in joins]
        assert len({reply.epoch for reply in replies}) == 1
        return replies[0]

    def leave(
        self,
        name: str,
        rank: int,
        epoch: int,
        progress: pb2.Progress | None = None,
        why: tuple[str, pb2.EventKind] = ("", pb2.EVENT_UNSPECIFIED),
    ) -> None:
        key = self.keys[name, epoch, rank]
        request = pb2.LeaveRequest(
            name=name, rank=rank, epoch=epoch, member_key=key, progress=progress
        )
        request.reason, request.cause = why
        self.stub.Leave(request, timeout=CALL_TIMEOUT_S)

    def heartbeat(
        self,
        name: str,
        rank: int,
        epoch: int,
        progress: pb2.Progress | None = None,
        process: str = "",
    ) -> pb2.HeartbeatReply:
        request = pb2.HeartbeatRequest(
            name=name,
            rank=rank,
            epoch=epoch,
            member_key=self.keys[name, epoch, rank],
            progress=progress,
            process=process,
        )
        return self.stub.Heartbeat(request, timeout=CALL_TIMEOUT_S)

    def remap(
        self,
        name: str,
        rank: int,
        epoch: int,
        to_epoch: int = 0,
        *,
        first_operation: int = 0,
        declined: bool = False,
        done: bool = False,
    ) -> pb2.Mapping | None:
        """What a rank is told of a change when it says this; None: nothing."""
        request = pb2.RemapRequest(
            name=name,
            rank=rank,
            epoch=epoch,
            member_key=self.keys[name, epoch, rank],
            to_epoch=to_epoch,
            first_operation=first_operation,
            declined=declined,
            done=done,
        )
        reply = self.stub.Remap(request, timeout=CALL_TIMEOUT_S)
        return reply.mapping if reply.HasField("mapping") else None

    def follow_change(self, name: str, world_size: int, epoch: int, first_operation: int) -> int:
        """What all ranks say of a change that has begun, at once; returns the new epoch."""
        ranks = list(reversed(range(world_size)))
        told = [self.remap(name, rank, epoch) for rank in ranks][-1]
        assert told is not None
        to = told.epoch
        self.remap(name, 0, epoch, to, first_operation=first_operation)
        for rank in ranks:
            self.remap(name, rank, epoch, to, done=True)
        for rank in ranks if told.waits else ():
            while (told := self.remap(name, rank, epoch, to)) is not None and told.waits:
                time.sleep(0.01)
            self.remap(name, rank, epoch)
        return to

    def resize(self, name: str, slots: int) -> pb2.Job:
        request = pb2.ResizeJobRequest(name=name, slots=slots)
        return self.operator.ResizeJob(request, timeout=CALL_TIMEOUT_S).job

    @contextmanager
    def alive(self, name: str, ranks: Iterable[int], epoch: int) -> Iterator[None]:
        """Heartbeats for these ranks meanwhile, as long as their job goes on."""
        stop = threading.Event()

        def beat(rank: int) -> None:
            wait_s = 0.0
            while not stop.wait(wait_s):
                try:
                    wait_s = self.heartbeat(name, rank, epoch).lease_s / 10
                except grpc.RpcError as error:
                    if error.code() is not grpc.StatusCode.NOT_FOUND:
                        raise
                    return

        beats = [self._pool.submit(beat, rank) for rank in ranks]
        try:
            yield
        finally:
            stop.set()
            for done in beats:
                done.result()

    @contextmanager
    def watch(self, name: str, rank: int, epoch: int) -> Iterator[Iterator[pb2.JobEvent]]:
        """A worker's stream of events, open; leaving the block breaks it.

        Without the word about windows that comes first of all.
        """
        key = self.keys[name, epoch, rank]
        request = pb2.WatchRequest(name=name, rank=rank, epoch=epoch, member_key=key)
        stream: Any = self.stub.Watch(request, timeout=WATCH_TIMEOUT_S)
        try:
            stream.initial_metadata()  # the controller has taken it
            yield (event for event in stream if event.kind != pb2.JOB_WINDOWS)
        finally:
            stream.cancel()

    @contextmanager
    def watch_jobs(self, name: str = "") -> Iterator[Iterator[pb2.JobEvent]]:
        """An operator's stream of events, open."""
        request = pb2.WatchJobsRequest(name=name)
        stream: Any = self.operator.WatchJobs(request, timeout=WATCH_TIMEOUT_S)
        try:
            stream.initial_metadata()
            yield stream
        finally:
            stream.cancel()

    def jobs(self) -> list[pb2.Job]:
        return list(self.operator.ListJobs(pb2.ListJobsRequest(), timeout=CALL_TIMEOUT_S).jobs)

    def tenants(self) -> list[pb2.Tenant]:
        reply = self.operator.ListTenants(pb2.ListTenantsRequest(), timeout=CALL_TIMEOUT_S)
        return list(reply.tenants)

    def show(self, switch: str = "") -> pb2.ShowSwitchReply:
        request = pb2.ShowSwitchRequest(switch=switch)
        return self.operator.ShowSwitch(request, timeout=CALL_TIMEOUT_S)

    def show_job(self, name: str) -> pb2.ShowJobReply:
        return self.operator.ShowJob(pb2.ShowJobRequest(name=name), timeout=CALL_TIMEOUT_S)

    def evict(self, name: str, reason: str = "") -> pb2.EvictJobReply:
        request = pb2.EvictJobRequest(name=name, reason=reason)
        return self.operator.EvictJob(request, timeout=CALL_TIMEOUT_S)

    def _join(self, request: pb2.JoinRequest) -> pb2.JoinReply:
        reply = self.stub.Join(request, timeout=CALL_TIMEOUT_S)
        self.keys[request.name, reply.epoch, request.rank] = reply.member_key
        return reply


@contextmanager
def workers_of(address: str) -> Iterator[Workers]:
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(64) as pool:
        yield Workers(ControllerStub(channel), OperatorStub(channel), pool)


def refusal(code: grpc.StatusCode, match: str) -> pytest.RaisesExc[grpc.RpcError]:
    def check(error: grpc.RpcError) -> bool:
        return error.code() is code and "\n" not in (error.details() or "")

    return pytest.RaisesExc(grpc.RpcError, match=match, check=check)


def wait_for_members(workers: Workers, name: str, ranks: list[int]) -> None:
    for _ in range(1000):
        if any(job.name == name and list(job.joined) == ranks for job in workers.jobs()):
            return
        time.sleep(0.01)
    raise AssertionError(f"{name}: never had ranks {ranks}: {workers.jobs()}")


def is_clean(workers: Workers) -> bool:
    shown = workers.show()
    return not of_jobs(shown) and shown.slots_used == 0 and not workers.jobs()
