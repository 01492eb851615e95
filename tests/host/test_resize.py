"""The controller resizes a job while it reduces, at the P4 program, over sockets and memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.modes.transports import TransportName
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc
from ina.rpc.channel import open_channel
from tests.worlds.fakes.udp_model import closing
from tests.worlds.virtual.remapped import Tensors

VALUES = 64
NAME = "resized"
SIZING = {"jobs": {"sizing": "asked"}}


class Operator:
    """Who resizes jobs."""

    def __init__(self, address: str) -> None:
        self._channel = open_channel(address)
        self._stub = controller_pb2_grpc.OperatorStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def resize(self, slots: int) -> None:
        self._stub.ResizeJob(pb2.ResizeJobRequest(name=NAME, slots=slots), timeout=10)

    def job(self) -> pb2.Job:
        job: pb2.Job = self._stub.ShowJob(pb2.ShowJobRequest(name=NAME), timeout=10).job
        return job

    @property
    def is_changing(self) -> bool:
        return self.job().HasField("remapping")


@contextmanager
def job(
    workers: int, slots: int, *, loss: float, transport: TransportName, threads: int = 1
) -> Iterator[tuple[Operator, list[Session]]]:
    with Embedded(
        *(VALUES, slots), loss_rate=loss, loss_seed=slots, shm=transport == "shm", config=SIZING
    ) as embedded:

        def join(rank: int) -> Session:
            return Session.join(
                *(embedded.controller_addr, NAME, rank, workers),
                options=WorkerOptions(transport=transport, threads=threads, slots=slots),
            )

        with ThreadPoolExecutor(workers) as pool:
            sessions = list(pool.map(join, range(workers)))
        operator = Operator(embedded.controller_addr)
        try:
            with closing(sessions):
                yield operator, sessions
        finally:
            operator.close()


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize(("transport", "threads"), [("udp", 1), ("udp", 4), ("shm", 1)])
def test_resizes_in_a_row_while_a_job_reduces(
    transport: TransportName, threads: int, loss: float
) -> None:
    with job(3, 64, loss=loss, transport=transport, threads=threads) as (operator, sessions):
        tensors = Tensors(sessions, VALUES, threads)
        for slots in (256, 32, 512, 8, 128):
            tensors.submit_all(3)
            operator.resize(slots)
            while operator.is_changing:
                tensors.submit_all(1)
                tensors.check()
            assert operator.job().slots == slots
        tensors.submit_all(3)
        tensors.check()
        windows = threading.Event()
        for _ in range(1000):
            if all(len(session._transport.mappings()) == 1 for session in sessions):
                break
            windows.wait(0.01)
        shown = operator.job()
        assert [s._transport.mappings() for s in sessions] == [[(shown.mapping_epoch, 64)]] * 3
        assert [session.ticket.slots for session in sessions] == [128] * 3
        for session in sessions:
            assert session.stats().corrupted_sums == session.stats().refused_results == 0


def test_an_idle_job_is_resized_at_once() -> None:
    with job(2, 64, loss=0.0, transport="udp") as (operator, sessions):
        operator.resize(128)
        event = threading.Event()
        for _ in range(1000):
            if not operator.is_changing:
                break
            event.wait(0.01)
        assert operator.job().slots == 128
        assert operator.job().mapping_epoch == sessions[0].ticket.epoch
        parts = [session.all_reduce(np.ones(300, np.int32), async_op=True) for session in sessions]
        assert all((handle.wait(30) == 2).all() for handle in parts)
