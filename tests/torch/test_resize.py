"""Training whose job is resized all along, or has another mode every time, ends with the
parameters of one that is not.

Real processes: an ``ina switch`` that loses packets, an ``ina controller run``, a worker each.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.torch import resize_cases
from tests.torch.launch import launch
from tests.torch.services import Services

SIZES = ((16, ""), (512, ""), (64, ""), (2048, ""))
MODES = ((16, "pool"), (512, ""), (64, "shared"), (2048, ""), (256, "pool"), (32, "shared"))
"""Slots, and another mode."""
EVERY_S = 0.05


@contextmanager
def resized_all_along(
    controller: str, wanted: Sequence[tuple[int, str]]
) -> Iterator[list[tuple[int, str]]]:
    """Gives the only job another size or mode every 50 ms; says which it has begun to give."""
    done, sizes = threading.Event(), list[tuple[int, str]]()

    def resize(stub: OperatorStub) -> None:
        (job,) = stub.ListJobs(pb2.ListJobsRequest(), timeout=10).jobs
        slots, mode = wanted[len(sizes) % len(wanted)]
        stub.ResizeJob(pb2.ResizeJobRequest(name=job.name, slots=slots, mode=mode), timeout=10)
        sizes.append((slots, mode))

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


@pytest.mark.parametrize(("shared_slots", "wanted"), [(0, SIZES), (16, MODES)])
def test_parameters_are_those_of_a_job_that_is_not_resized(
    shared_slots: int, wanted: Sequence[tuple[int, str]], tmp_path: Path
) -> None:
    with Services(
        tmp_path / "services",
        loss_rate=0.02,
        lease_s=30.0,
        loss_s=30.0,
        shared_slots=shared_slots,
    ) as services:
        environ = services.environ
        plain = launch(resize_cases.train, 2, tmp_path / "plain", environ=environ)
        with resized_all_along(services.controller_addr, wanted) as sizes:
            resized = launch(resize_cases.train, 2, tmp_path / "resized", environ=environ)
    assert len(sizes) >= 5
    assert resized == plain
    assert plain[0] == plain[1]
