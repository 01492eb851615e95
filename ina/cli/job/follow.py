"""Follows jobs at a controller: its events as they come, and all jobs once a second."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc

from ina.cli.common.rpc_client import TIMEOUT_S, addresses, call, controller_at, describe, explain
from ina.doctor.job_verdict import switch_of
from ina.errors import InaError, UnavailableError
from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import let_go
from ina.rpc.controller_pb2_grpc import OperatorStub

POLL_S = 1.0
AWAY_S = 60.0
"""A controller that was there and goes away is waited for so long."""
_PAUSE_S = 1.0


@dataclass(frozen=True)
class Jobs:
    """The jobs as they are now."""

    jobs: list[pb2.Job]
    controller: pb2.ShowControllerReply
    """What it says of its switches: what a job waits for may be one of them."""

    def switch_state(self, job: pb2.Job) -> str:
        """Of the job's switch."""
        return switch_of(job, self.controller).state


Seen = pb2.JobEvent | Jobs | InaError
"""An event; the jobs; the controller went away (and is tried again)."""


def follow(controllers: str, name: str) -> Iterator[Seen]:
    """Yields what happens to job ``name`` (empty: to all), beginning with the jobs as they are.

    Goes to another of ``controllers`` (comma-separated) or back to the same one when the one it
    follows goes away; then the jobs come first again, and events of that time are missed. Raises
    :class:`UnavailableError` if none answers: at the beginning at once, later after ``AWAY_S``;
    :class:`RequestRefusedError`.
    """
    wanted = addresses(controllers)
    last_heard_s: float | None = None
    while True:
        failures: list[UnavailableError] = []
        for address in wanted:
            try:
                for seen in _follow_one(address, name, is_only=len(wanted) == 1):
                    last_heard_s = time.monotonic()
                    yield seen
            except UnavailableError as error:
                failures.append(error.with_traceback(None))  # which holds this frame
        if last_heard_s is None or time.monotonic() - last_heard_s > AWAY_S:
            raise UnavailableError("; ".join(map(str, failures)))
        yield failures[-1]
        time.sleep(_PAUSE_S)


def _follow_one(address: str, name: str, *, is_only: bool) -> Iterator[Seen]:
    with controller_at(address) as operator:
        if not is_only:
            describe(operator, address)
        events: queue.Queue[pb2.JobEvent | InaError | None] = queue.Queue()
        stream: Any = operator.WatchJobs(pb2.WatchJobsRequest(name=name))
        begun = threading.Event()
        reader = threading.Thread(
            target=_read, args=(stream, begun, events, address), name="ina-watch"
        )
        reader.start()
        try:
            begun.wait(TIMEOUT_S)  # so that nothing happens unseen between the jobs and the events
            while True:
                yield _jobs(operator, name, address)
                yield from _until_poll(events, address)
        finally:
            stream.cancel()
            reader.join()


def _read(
    stream: Any,
    begun: threading.Event,
    events: queue.Queue[pb2.JobEvent | InaError | None],
    address: str,
) -> None:
    try:
        stream.initial_metadata()  # sent when the controller has begun to listen
        begun.set()
        for event in stream:
            events.put(event)
        events.put(None)
    except grpc.RpcError as error:
        let_go(error)
        events.put(explain(error, address))
    finally:
        begun.set()


def _until_poll(
    events: queue.Queue[pb2.JobEvent | InaError | None], address: str
) -> Iterator[pb2.JobEvent]:
    """The events of the next ``POLL_S``."""
    until_s = time.monotonic() + POLL_S
    with contextlib.suppress(queue.Empty):
        while (left_s := until_s - time.monotonic()) > 0:
            event = events.get(timeout=left_s)
            if event is None:
                raise UnavailableError(f"controller {address}: it ended the stream of events")
            if isinstance(event, InaError):
                try:
                    raise event
                finally:  # its traceback holds this frame, and the one that holds the stream
                    del event
            yield event


def _jobs(operator: OperatorStub, name: str, address: str) -> Jobs:
    found = call(operator.ListJobs, pb2.ListJobsRequest(), address).jobs
    wanted = [job for job in found if name in ("", job.name)]
    return Jobs(wanted, describe(operator, address))
