"""Workers that only talk to the controller."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import ControllerStub

CALL_TIMEOUT_S = 30.0


class Workers:
    """A client of one controller; each join runs in a thread of its own."""

    def __init__(self, stub: ControllerStub, pool: ThreadPoolExecutor) -> None:
        self.stub = stub
        self._pool = pool

    def create(self, name: str, world_size: int, slots: int = 0) -> pb2.CreateJobReply:
        request = pb2.CreateJobRequest(name=name, world_size=world_size, slots=slots)
        return self.stub.CreateJob(request, timeout=CALL_TIMEOUT_S)

    def join(
        self,
        name: str,
        rank: int,
        *,
        host: str = "127.0.0.1",
        udp_port: int | None = None,
        timeout_s: float = 20.0,
    ) -> Future[pb2.JoinReply]:
        request = pb2.JoinRequest(
            name=name,
            rank=rank,
            host=host,
            udp_port=4000 + rank if udp_port is None else udp_port,
            timeout_s=timeout_s,
        )
        return self._pool.submit(self.stub.Join, request, timeout=CALL_TIMEOUT_S)

    def run_job(self, name: str, world_size: int, first_udp_port: int = 4000) -> pb2.JoinReply:
        """Creates a job and joins all its ranks."""
        self.create(name, world_size)
        joins = [
            self.join(name, rank, udp_port=first_udp_port + rank) for rank in range(world_size)
        ]
        replies = [join.result() for join in joins]
        assert len({reply.epoch for reply in replies}) == 1
        return replies[0]

    def leave(self, name: str, rank: int, epoch: int) -> None:
        request = pb2.LeaveRequest(name=name, rank=rank, epoch=epoch)
        self.stub.Leave(request, timeout=CALL_TIMEOUT_S)

    def jobs(self) -> list[pb2.Job]:
        return list(self.stub.ListJobs(pb2.ListJobsRequest(), timeout=CALL_TIMEOUT_S).jobs)

    def show(self) -> pb2.ShowSwitchReply:
        return self.stub.ShowSwitch(pb2.ShowSwitchRequest(), timeout=CALL_TIMEOUT_S)


@contextmanager
def workers_of(address: str) -> Iterator[Workers]:
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(64) as pool:
        yield Workers(ControllerStub(channel), pool)
