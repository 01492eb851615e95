"""Training whose job is resized all along, or has another mode every time, ends with the
parameters of one that is not.

Real processes: an ``ina switch`` that loses packets, an ``ina controller run``, a worker each.
"""

from __future__ import annotations

import contextlib
import functools
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
from tests.worlds.processes.launch import launch
from tests.worlds.processes.services import Services

SIZES = ((16, ""), (512, ""), (64, ""), (2048, ""))
MODES = ((16, "pool"), (512, ""), (64, "shared"), (2048, ""), (256, "pool"), (32, "shared"))
"""Slots, and another mode."""
EVERY_S = 0.05
LONG_STEPS = 2000
"""A minute and more, as a step sleeps 20 ms and waits for what was lost."""
DEADLINE_S = 300.0
_PLAIN: dict[int, bytes] = {}
"""By steps: parameters without any resize, which are those of either mode."""


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
    assert compared(tmp_path, shared_slots, wanted) >= 5


@pytest.mark.long
@pytest.mark.parametrize(("shared_slots", "wanted"), [(0, SIZES), (16, MODES)])
def test_so_they_are_after_a_minute_of_resizes_and_heavy_loss(
    shared_slots: int, wanted: Sequence[tuple[int, str]], tmp_path: Path
) -> None:
    resizes = compared(tmp_path, shared_slots, wanted, steps=LONG_STEPS, loss_rate=0.05)
    print(f"{resizes} resizes in {LONG_STEPS} steps")
    assert resizes >= 100


def compared(
    folder: Path,
    shared_slots: int,
    wanted: Sequence[tuple[int, str]],
    *,
    steps: int = resize_cases.STEPS,
    loss_rate: float = 0.02,
) -> int:
    """Trains with and without, asserts that it comes to the same; how many resizes began."""
    train = functools.partial(resize_cases.train, steps=steps)
    with Services(
        folder / "services",
        loss_rate=loss_rate,
        lease_s=30.0,
        loss_s=30.0,
        shared_slots=shared_slots,
    ) as services:
        environ = services.environ
        if steps not in _PLAIN:
            plain = launch(train, 2, folder / "plain", environ=environ, deadline_s=DEADLINE_S)
            assert plain[0] == plain[1]
            _PLAIN[steps] = plain[0]
        with resized_all_along(services.controller_addr, wanted) as sizes:
            resized = launch(train, 2, folder / "resized", environ=environ, deadline_s=DEADLINE_S)
    assert resized == [_PLAIN[steps]] * 2
    return len(sizes)
