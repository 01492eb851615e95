"""Training whose job is resized all along ends with the parameters of one that is not.

Real processes: an ``ina switch`` that loses packets, an ``ina controller run``, a worker each.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.torch import resize_cases
from tests.torch.launch import launch
from tests.torch.services import Services

SIZES = (16, 512, 64, 2048)
EVERY_S = 0.05


@contextmanager
def resized_all_along(controller: str) -> Iterator[list[int]]:
    """Gives the only job another size every 50 ms; says which it has begun to give."""
    done, sizes = threading.Event(), list[int]()

    def resize(stub: OperatorStub) -> None:
        (job,) = stub.ListJobs(pb2.ListJobsRequest(), timeout=10).jobs
        slots = SIZES[len(sizes) % len(SIZES)]
        stub.ResizeJob(pb2.ResizeJobRequest(name=job.name, slots=slots), timeout=10)
        sizes.append(slots)

    def run() -> None:
        with open_channel(controller) as channel:
            stub = OperatorStub(channel)
            while not done.wait(EVERY_S):
                # There is no job yet, or not any more; or it changes still.
                with contextlib.suppress(grpc.RpcError, ValueError):
                    resize(stub)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield sizes
    finally:
        done.set()
        thread.join(30)


def test_parameters_are_those_of_a_job_that_is_not_resized(tmp_path: Path) -> None:
    with Services(tmp_path / "services", loss_rate=0.02, lease_s=30.0, loss_s=30.0) as services:
        environ = services.environ
        plain = launch(resize_cases.train, 2, tmp_path / "plain", environ=environ)
        with resized_all_along(services.controller_addr) as sizes:
            resized = launch(resize_cases.train, 2, tmp_path / "resized", environ=environ)
    assert len(sizes) >= 5
    assert resized == plain
    assert plain[0] == plain[1]
