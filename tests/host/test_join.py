"""Joining and leaving through a controller's gRPC service: a fake one, with the real messages."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import numpy as np
import pytest

from ina.host import (
    ControllerError,
    ControllerTimeoutError,
    InvalidTicketError,
    Session,
    TransportError,
    WorldSizeError,
)
from ina.protocol.switch_model import Endpoint, Job
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from tests.host.udp_model import UdpModel, closing

JOB, EPOCH = 3, 0x2_0001


# The generated stubs are typed for grpc.aio only.
Servicer: Any = rpc.ControllerServicer
register: Any = rpc.add_ControllerServicer_to_server


class FakeController(Servicer):  # type: ignore[misc]
    """Programs the switch model once all workers have joined."""

    def __init__(self, switch: UdpModel) -> None:
        self.switch = switch
        self.switch_host = switch.address[0]
        self.world_size = 0
        self.joined: dict[int, pb2.JoinRequest] = {}
        self.left: list[tuple[int, int]] = []

    def CreateJob(self, request: pb2.CreateJobRequest, context: Any) -> pb2.CreateJobReply:  # noqa: N802
        if self.world_size not in (0, request.world_size):
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "the job has\nanother size")
        self.world_size = request.world_size
        return pb2.CreateJobReply(
            job=JOB,
            switch_host=self.switch_host,
            switch_udp_port=self.switch.address[1],
            values_per_packet=self.switch.values,
            slots=request.slots or self.switch.slots,
        )

    def Join(self, request: pb2.JoinRequest, context: Any) -> pb2.JoinReply:  # noqa: N802
        self.joined[request.rank] = request
        if len(self.joined) == self.world_size:
            workers = tuple(
                Endpoint(0, 0, worker.udp_port) for _, worker in sorted(self.joined.items())
            )
            self.switch.model.install(Job(JOB, EPOCH, 0, self.switch.slots, workers))
        while len(self.joined) < self.world_size:
            if context.time_remaining() < 5.0:  # the client's grace is over
                context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "rank 1 is missing")
            time.sleep(0.01)
        return pb2.JoinReply(
            job=JOB, epoch=EPOCH, world_size=self.world_size, slots=self.switch.slots
        )

    def Leave(self, request: pb2.LeaveRequest, context: Any) -> pb2.LeaveReply:  # noqa: N802
        self.left.append((request.rank, request.epoch))
        return pb2.LeaveReply()


@pytest.fixture
def controller() -> Iterator[tuple[str, FakeController]]:
    with UdpModel() as switch:
        fake = FakeController(switch)
        with futures.ThreadPoolExecutor(8) as pool:
            server = grpc.server(pool)
            register(fake, server)
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            yield f"127.0.0.1:{port}", fake
            server.stop(None).wait(10)


def test_workers_join_reduce_and_leave(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    with futures.ThreadPoolExecutor(2) as pool:
        joining = [
            pool.submit(Session.join, address, "digits", rank, 2, slots=64, host="127.0.0.1")
            for rank in range(2)
        ]
        sessions = [future.result(60) for future in joining]
    with closing(sessions):
        assert {request.host for request in fake.joined.values()} == {"127.0.0.1"}
        assert sessions[1].ticket.epoch == EPOCH
        assert sessions[1].ticket.job_name == "digits"
        handles = [s.all_reduce(np.arange(300, dtype=np.int32), async_op=True) for s in sessions]
        assert all((handle.wait(30) == 2 * np.arange(300)).all() for handle in handles)
    assert sorted(fake.left) == [(0, EPOCH), (1, EPOCH)]


def test_missing_workers_end_the_wait(controller: tuple[str, FakeController]) -> None:
    with pytest.raises(
        ControllerTimeoutError, match="join job 'digits' as rank 0: rank 1 is missing"
    ):
        Session.join(controller[0], "digits", 0, 2, timeout_s=0.2)


def test_a_refusal_is_one_line_with_the_controllers_reason(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    fake.world_size = 4
    with pytest.raises(ControllerError) as refused:
        Session.join(address, "digits", 0, 2, timeout_s=5)
    message = str(refused.value)
    assert message == (
        f"controller {address}: cannot create job 'digits': the job has another size "
        "(ALREADY_EXISTS)"
    )


def test_a_switch_address_that_is_none(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    fake.switch_host = "no such host"
    with pytest.raises(TransportError, match="no such host"):
        Session.join(address, "digits", 0, 1, timeout_s=5)


def test_a_worker_that_cannot_use_what_it_joined_leaves(
    controller: tuple[str, FakeController], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, fake = controller
    monkeypatch.setattr(fake.switch, "values", 5000)  # no ticket can say that
    with pytest.raises(InvalidTicketError, match="values_per_packet is 5000"):
        Session.join(address, "train", 0, 1)
    assert fake.left == [(0, EPOCH)]


@pytest.mark.parametrize("op_timeout_s", [0, -1, float("inf"), float("nan")])
def test_an_impossible_deadline_is_refused_before_anything_is_sent(op_timeout_s: float) -> None:
    with pytest.raises(InvalidTicketError, match="op_timeout_s"):
        Session.join("127.0.0.1:1", "train", 0, 1, op_timeout_s=op_timeout_s)


def test_no_controller_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ControllerTimeoutError, match=f"controller {address}: cannot create job"):
        Session.join(address, "digits", 0, 1, timeout_s=0.3)


def test_33_workers_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(WorldSizeError, match="33"):
        Session.join("127.0.0.1:1", "digits", 0, 33)
