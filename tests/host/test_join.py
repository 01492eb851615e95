"""Joining and leaving through a controller's gRPC service: a fake one, with the real messages."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from concurrent import futures
from functools import partial
from typing import Any

import grpc
import numpy as np
import pytest

from ina.errors import InvalidInputError
from ina.host import (
    ControllerError,
    ControllerTimeoutError,
    InvalidTicketError,
    Session,
    TransportError,
    WorkerOptions,
    WorldSizeError,
)
from ina.protocol.spec import path_of
from ina.rpc import controller_pb2 as pb2
from ina.rpc.patience import Patience
from tests.worlds.fakes.controller import EPOCH, JOB, FakeController
from tests.worlds.fakes.udp_model import UdpModel, closing


@pytest.fixture
def controller() -> Iterator[tuple[str, FakeController]]:
    with UdpModel() as switch, FakeController(switch) as fake:
        yield fake.address, fake


def test_workers_join_reduce_and_leave(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    with futures.ThreadPoolExecutor(2) as pool:
        joining = [
            pool.submit(
                Session.join, address, "digits", rank, 2, WorkerOptions(slots=64, host="127.0.0.1")
            )
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


def test_a_switch_of_another_wire_format_is_not_joined(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    fake.wire_version = 0  # as of a controller that says none
    with pytest.raises(ControllerError, match=r"takes packets of wire format 0, .* sends 5; inst"):
        Session.join(address, "digits", 0, 1)
    assert not fake.joined


def test_a_job_of_a_mode_that_is_not_known_is_not_joined(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    fake.mode = "sparse"
    said = r"its job has mode 'sparse', .* 'pool', .* and 'transparent'; inst"
    with pytest.raises(ControllerError, match=said):
        Session.join(address, "digits", 0, 1)
    assert not fake.joined


def test_a_worker_says_where_it_is_and_is_told_its_trees(
    controller: tuple[str, FakeController], caplog: pytest.LogCaptureFixture
) -> None:
    address, fake = controller
    host, port = fake.switch.address
    lanes = fake.switch.slots // 2
    fake.trees = [
        pb2.Tree(
            job=JOB, host=host, udp_port=port, worker=0, path=path_of([0]), expected_bitmap=0b11,
            lanes=lanes, node="leaf1",
        )
    ]  # fmt: skip
    caplog.set_level(logging.INFO, "ina.host")
    with Session.join(address, "digits", 0, 1) as session:
        (place,) = session.ticket.trees
        assert (place.where, place.lanes_text) == (f"leaf1 at {host}:{port}", f"0-{lanes - 1}")
        assert place.expected_bitmap == 0b11
    said = list(fake.created[0].addresses)
    assert said[0] == "127.0.0.1"
    assert len(said) == len(set(said))
    assert not [one for one in said[1:] if one.startswith("127.")]
    assert f"; summed in trees: lanes 0-{lanes - 1} as child 0 of leaf1 at {host}" in caplog.text


def test_a_first_tree_may_begin_elsewhere_than_at_its_top_of_rack(
    controller: tuple[str, FakeController],
) -> None:
    """A worker of one tree sends there, from the address that the controller knows."""
    address, fake = controller
    lanes = fake.switch.slots // 2
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as node:
        node.bind(("127.0.0.9", 0))
        node.settimeout(10)
        host, port = node.getsockname()
        fake.trees = [pb2.Tree(job=JOB, host=host, udp_port=port, expected_bitmap=1, lanes=lanes)]
        with Session.join(address, "digits", 0, 1) as session:
            ticket = session.ticket
            assert ticket.switch.place == (host, port)
            session.all_reduce(np.ones(5, np.int32), async_op=True)
            _, source = node.recvfrom(2048)
            assert source == (fake.joined[0].host, fake.joined[0].udp_port)


def test_an_address_of_its_own_is_said_first(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    with Session.join(address, "digits", 0, 1, WorkerOptions(host="127.0.0.5")):
        assert fake.created[0].addresses[0] == "127.0.0.5"


def test_missing_workers_end_the_wait(controller: tuple[str, FakeController]) -> None:
    with pytest.raises(
        ControllerTimeoutError, match="join job 'digits' as rank 0: rank 1 is missing"
    ):
        Session.join(controller[0], "digits", 0, 2, WorkerOptions(timeout_s=0.2))


def test_a_refusal_is_one_line_with_the_controllers_reason(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    fake.world_size = 4
    with pytest.raises(ControllerError) as refused:
        Session.join(address, "digits", 0, 2, WorkerOptions(timeout_s=5))
    message = str(refused.value)
    assert message == (
        f"controller {address}: cannot create job 'digits': the job has another size "
        "(ALREADY_EXISTS)"
    )


def test_a_switch_address_that_is_none(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    fake.switch_host = "no such host"
    with pytest.raises(TransportError, match="no such host"):
        Session.join(address, "digits", 0, 1, WorkerOptions(timeout_s=5))


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
        Session.join("127.0.0.1:1", "train", 0, 1, WorkerOptions(op_timeout_s=op_timeout_s))


def test_no_controller_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ControllerTimeoutError, match=f"controller {address}: nobody listens there"):
        Session.join(address, "digits", 0, 1, WorkerOptions(timeout_s=0.3))


def test_1025_workers_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(WorldSizeError, match="world_size 1025: a job has at most 1024 workers"):
        Session.join("127.0.0.1:1", "digits", 0, 1025)


def test_what_the_worker_wishes_reaches_the_controller(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    with Session.join(
        address, "digits", 0, 1, WorkerOptions(token="t0ken", tenant="vision", priority=3, slots=64)
    ):
        pass
    (created,) = fake.created
    assert (created.token, created.tenant, created.priority) == ("t0ken", "vision", 3)
    assert fake.joined[0].token == "t0ken"


def test_the_controllers_window_limits_the_packets_in_flight(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    fake.window = 3
    with Session.join(address, "digits", 0, 1) as session:
        session.all_reduce(np.ones(1000, np.float32))
        stats = session.stats()
    assert (stats.window, stats.in_flight_limit) == (32, 3)


def test_a_controller_that_comes_late_is_waited_for(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    fake.stop()
    with futures.ThreadPoolExecutor(1) as pool:
        joining = pool.submit(Session.join, address, "digits", 0, 1)
        assert not futures.wait([joining], 0.3).done
        fake.start()
        joining.result(30).close()


def test_a_controller_killed_while_workers_join_is_joined_again(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    with futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(Session.join, address, "digits", 0, 2)
        fake.until(lambda: 0 in fake.joined)
        fake.stop()
        fake.joined.clear()  # nothing of it is stored before all are there
        fake.start()
        second = pool.submit(Session.join, address, "digits", 1, 2)
        with closing([first.result(60), second.result(60)]) as sessions:
            handles = [s.all_reduce(np.ones(300, np.int32), async_op=True) for s in sessions]
            assert all((handle.wait(30) == 2).all() for handle in handles)
    assert len(fake.created) == 3


def test_a_standby_is_passed_over(controller: tuple[str, FakeController]) -> None:
    address, fake = controller
    with FakeController(fake.switch) as standby:
        standby.standby = True
        with Session.join(f"{standby.address}, {address}", "digits", 0, 1) as session:
            assert (session.all_reduce(np.ones(3, np.int32)) == 1).all()
        with pytest.raises(ControllerTimeoutError, match=r"standby: .*tried for 0\.3 s"):
            Session.join(standby.address, "digits", 0, 1, WorkerOptions(timeout_s=0.3))
    assert standby.created == []


def test_no_address_at_all() -> None:
    with pytest.raises(InvalidInputError, match="host:port is needed"):
        Session.join(" , ", "digits", 0, 1)


def test_a_job_that_ends_between_create_and_join_is_created_again(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    fake.forgets = 2
    with Session.join(address, "digits", 0, 1) as session:
        assert (session.all_reduce(np.ones(3, np.int32)) == 1).all()
    assert len(fake.created) == 3


def test_a_controller_that_stops_in_the_middle_of_an_answer_is_asked_again(
    controller: tuple[str, FakeController], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, fake = controller

    def stops(context: Any) -> None:
        monkeypatch.undo()
        context.abort(grpc.StatusCode.CANCELLED, "CANCELLED")

    monkeypatch.setattr(fake, "_check_primary", stops)
    with Session.join(address, "digits", 0, 1):
        assert len(fake.created) == 1


def test_leaving_finds_the_controller_that_has_taken_over(
    controller: tuple[str, FakeController],
) -> None:
    address, fake = controller
    with FakeController(fake.switch) as former:
        session = Session.join(f"{former.address},{address}", "digits", 0, 1)
        former.standby = True
        session.close()
    assert former.left == []
    assert fake.left == [(0, EPOCH)]


def test_that_no_controller_answers_is_said_long_before_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And who, where and for how long yet; after 5 s, which are 50 ms here."""
    monkeypatch.setattr("ina.host.thread_driver.Patience", partial(Patience, first_s=0.05))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(ControllerTimeoutError):
        Session.join(address, "digits", 1, 2, WorkerOptions(timeout_s=0.5))
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said
    assert said[0].startswith(f"job 'digits' rank 1: controller {address} does not answer (")
    assert "(nobody listens there: it does not run, or at another address)" in said[0]
    assert "trying again for another " in said[0]


def test_a_wait_for_other_ranks_is_not_blamed_on_the_controller(
    controller: tuple[str, FakeController],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("ina.host.thread_driver.Patience", partial(Patience, first_s=0.2))
    with pytest.raises(ControllerTimeoutError, match="rank 1 is missing"):
        Session.join(controller[0], "digits", 0, 2, WorkerOptions(timeout_s=0.6))
    assert "does not answer" not in caplog.text
