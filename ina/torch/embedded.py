"""The embedded controller and soft switch of this process, shared by its process groups."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING, Any

import grpc

from ina.p4.names import DEFAULT_MODE
from ina.rpc import controller_pb2, controller_pb2_grpc
from ina.rpc.channel import open_channel
from ina.rpc.ranks import ranks_text
from ina.torch.env import Settings

if TYPE_CHECKING:
    from ina.controller.embedded import Embedded

_log = logging.getLogger("ina.torch")

_POLL_S = 0.02
_RPC_DEADLINE_S = 2.0
_TELL_S = 2.0
"""After so long it says for whom it waits."""


class _Host:
    """Starts the embedded switch for the first group that needs it, stops it after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedded: Embedded | None = None
        self._users = 0

    def acquire(self, settings: Settings) -> str:
        """Address (``host:port``) of the embedded controller, started if it is not running.

        Raises what :class:`ina.controller.embedded.Embedded` raises.
        """
        with self._lock:
            if self._embedded is None:
                # Imported here: a worker that joins a running controller needs no soft switch.
                from ina.controller.embedded import Embedded

                jobs = {} if settings.lease_s is None else {"lease_s": settings.lease_s}
                embedded = Embedded(
                    values=settings.packet_values,
                    host=settings.embedded_host,
                    loss_rate=settings.loss_rate,
                    loss_seed=settings.loss_seed,
                    shm=settings.transport != "udp",
                    config={"switch": {"multicast": settings.multicast}, "jobs": jobs},
                    mode=settings.mode or DEFAULT_MODE,
                )
                embedded.__enter__()
                self._embedded = embedded
                _log.warning(
                    "ina: INA_CONTROLLER is not set: rank 0 runs an embedded controller at %s and"
                    " a soft switch%s with %d values a packet; workers on its host reach it over"
                    " %s",
                    embedded.controller_addr,
                    "" if embedded.aggregator is None else " and an aggregator",
                    settings.packet_values,
                    embedded.way_text,
                )
            self._users += 1
            return self._embedded.controller_addr

    def release(self, leave_timeout_s: float) -> None:
        """Give back one :meth:`acquire`; the last one stops the switch.

        Before that it waits at most ``leave_timeout_s`` for the other workers to leave.
        """
        with self._lock:
            self._users -= 1
            if self._users > 0 or self._embedded is None:
                return
            embedded, self._embedded = self._embedded, None
        try:
            _wait_until_left(embedded.controller_addr, leave_timeout_s)
        finally:
            embedded.__exit__(None, None, None)

    def current(self) -> Embedded | None:
        """The running embedded switch of this process, if any."""
        return self._embedded


def _wait_until_left(controller: str, timeout_s: float) -> None:
    tell_at = time.monotonic() + _TELL_S
    deadline = time.monotonic() + timeout_s
    with open_channel(controller) as channel:
        stub = controller_pb2_grpc.OperatorStub(channel)
        while True:
            try:
                jobs = stub.ListJobs(controller_pb2.ListJobsRequest(), timeout=_RPC_DEADLINE_S).jobs
            except grpc.RpcError as error:  # it is in this process; nobody else can say more
                _log.warning(
                    "ina: stopping the embedded switch, of which the controller does not say who"
                    " still uses it: %s",
                    " ".join(str(error.details()).split()),
                )
                return
            waiting = [job for job in jobs if job.joined]
            if not waiting:
                return
            who = "; ".join(f"{job.name}: {ranks_text(job.joined)}" for job in waiting)
            if time.monotonic() >= tell_at:
                tell_at = math.inf
                _log.warning(
                    "ina: the embedded switch waits up to %g s for workers to leave (%s)",
                    *(timeout_s, who),
                )
            if time.monotonic() >= deadline:
                _log.warning(
                    "ina: stopping the embedded switch although workers have not left after %g s"
                    " (%s)",
                    timeout_s,
                    who,
                )
                return
            time.sleep(_POLL_S)


HOST = _Host()


def counters() -> dict[str, Any] | None:
    """The P4 program's counters, over P4Runtime, and the ports'; None if no switch runs here."""
    embedded = HOST.current()
    if embedded is None:
        return None
    shown, ports = embedded.show(), embedded.switch.stats()
    return {
        "program": shown.program,
        "counters": [
            {
                "name": counter.name,
                "index": counter.index,
                "label": counter.label,
                "packets": counter.packets,
                "bytes": counter.bytes,
            }
            for counter in shown.counters
        ],
        "rx_packets": ports.rx_packets,
        "tx_packets": ports.tx_packets,
        "loss_in_packets": ports.loss_in_packets,  # injected: INA_LOSS_RATE
        "loss_out_packets": ports.loss_out_packets,
    }
