"""A worker's sessions as Prometheus metrics, for the whole process."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina.host.errors import SessionClosedError
from ina.host.stats import SessionStats
from ina.host.ticket import Ticket
from ina.metrics import Living, MetricsAddressError, MetricsServer, parse_address

_log = logging.getLogger(__name__)

ENVIRONMENT = "INA_METRICS"
"""``host:port`` to serve at; torchrun's LOCAL_RANK is added to the port. Port 0: a free one."""
_NS = 1e-9

Read = Callable[[SessionStats], float]

# Metric name after "ina_worker_", help, and the field or what makes it.
COUNTERS: tuple[tuple[str, str, Read], ...] = (
    ("unclaimed_packets", "Packets that the window let claim no slot that jobs share: summed by the"
     " aggregator.", lambda s: s.unclaimed_packets),
    ("retransmissions", "Packets sent again.", lambda s: s.retransmissions),
    ("losses", "Packets sent again that were needed: an earlier copy, or its answer, was lost.",
     lambda s: s.losses),
    ("spurious_resends", "Packets sent again, not needed, because a later one was answered.",
     lambda s: s.spurious_resends),
    ("probes", "Packets sent again, not needed, because nothing was heard: a worker was late.",
     lambda s: s.probes),
    ("overtaken_packets", "Packets sent again because a later packet's result had come.",
     lambda s: s.overtaken),
    ("timeouts", "Expiries of retransmission timers.", lambda s: s.timeouts),
    ("shared_results", "Results that came to several workers at once.", lambda s: s.shared_packets),
    ("duplicate_results", "Results that had arrived before.", lambda s: s.duplicates),
    ("stale_results", "Results of older chunks.", lambda s: s.stale),
    ("corrupted_sums", "Results that were not the sum of what the workers sent: not used.",
     lambda s: s.corrupted_sums),
    ("refused_results", "Results that were malformed or not what was waited for.",
     lambda s: s.refused_results),
    ("damaged_results", "RoCEv2: packets not as their ICRC says, or for another queue pair.",
     lambda s: s.damaged_results),
    ("icmp_errors", "The switch's address answered that nobody listens, or is not reachable.",
     lambda s: s.icmp_errors),
    ("send_drops", "Packets that this host's kernel did not take.", lambda s: s.send_drops),
    ("passed_on_packets", "Packets that another thread than that of their lane received.",
     lambda s: s.passed_on),
    ("ecn_marked_results", "Results that met a long queue.", lambda s: s.ecn_marked),
    ("exponent_rounds", "Rounds that only agreed on exponents, also by a wrong guess.",
     lambda s: s.exponent_rounds),
    ("guessed_chunks", "Chunks that needed no such round, by a right guess.",
     lambda s: s.guessed_chunks),
    ("chunks", "Chunks (packets of values) whose sums have come.", lambda s: s.chunks_done),
    ("reduced_bytes", "Bytes of arrays that were reduced, in their own type: goodput.",
     lambda s: s.bytes_done),
    ("operations", "Operations done.", lambda s: s.operations_done),
    ("sparse_sums", "Sums of which only blocks were sent that some rank has.",
     lambda s: s.sparse_sums),
    ("sparse_blocks", "Blocks of their arrays.", lambda s: s.sparse_blocks),
    ("sparse_own_blocks", "Of those, not zero on this rank.", lambda s: s.sparse_own_blocks),
    ("sparse_union_blocks", "Of those, not zero on some rank: sent.",
     lambda s: s.sparse_union_blocks),
)  # fmt: skip
GAUGES: tuple[tuple[str, str, Read], ...] = (
    ("in_flight_packets", "Packets that wait for their result.", lambda s: s.in_flight),
    ("in_flight_limit_packets", "As many there may be.", lambda s: s.in_flight_limit),
    ("window_packets", "The job's window, W.", lambda s: s.window),
    ("round_trip_seconds", "Smoothed time from a packet to its result; waits for late workers"
     " count.", lambda s: s.srtt_ns * _NS),
    ("retransmission_timeout_seconds", "The retransmission timeout.", lambda s: s.rto_ns * _NS),
    ("receive_buffer_bytes", "Receive buffer that the kernel granted.",
     lambda s: s.receive_buffer_bytes),
)  # fmt: skip
# These have the label "direction": what of them is sent, what received.
BY_DIRECTION: tuple[tuple[str, str, Read, Read], ...] = (
    ("packets", "Packets to and from the switch, with those sent again.",
     lambda s: s.packets_sent, lambda s: s.packets_received),
    ("bytes", "Bytes of those, from Ethernet's header on.",
     lambda s: s.bytes_sent, lambda s: s.bytes_received),
)  # fmt: skip


class Counted(Protocol):
    """What a session is here."""

    @property
    def ticket(self) -> Ticket:
        """Job and rank."""

    def stats(self) -> SessionStats:
        """The counts so far."""


class SessionCollector(Collector):
    """The sessions that live, by job and rank."""

    def __init__(self) -> None:
        self.sessions: Living[Counted] = Living()

    def collect(self) -> Iterable[Metric]:
        """All families, with the labels ``job_name`` and ``rank``."""
        read = self._read()
        for name, text, sent, received in BY_DIRECTION:
            family = CounterMetricFamily(
                f"ina_worker_{name}", text, labels=["job_name", "rank", "direction"]
            )
            for (job, rank), stats in read.items():
                family.add_metric([job, rank, "sent"], sent(stats))
                family.add_metric([job, rank, "received"], received(stats))
            yield family
        for kind, rows in ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)):
            for name, text, of in rows:
                by_rank = kind(f"ina_worker_{name}", text, labels=["job_name", "rank"])
                for labels, stats in read.items():
                    by_rank.add_metric(labels, of(stats))
                yield by_rank

    def _read(self) -> dict[tuple[str, str], SessionStats]:
        found = {}
        for session in self.sessions:
            with contextlib.suppress(SessionClosedError):  # closed since
                key = (session.ticket.job_name, str(session.ticket.rank))
                found[key] = session.stats()
        return found


_session_collector = SessionCollector()
SESSIONS = _session_collector.sessions
"""Every open session of this process."""
COLLECTORS: list[Collector] = [_session_collector]
"""What a process serves; the torch backend adds its groups."""


def serve_metrics(address: str) -> MetricsServer:
    """Serve the counts of this process's sessions at ``host:port`` until it is closed.

    Port 0 takes a free one, see ``MetricsServer.address``. Raises MetricsAddressError,
    MetricsListenError.
    """
    return MetricsServer(address, COLLECTORS)


class _Process:
    """The endpoint that ``INA_METRICS`` asks for; once started it lives as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: MetricsServer | None = None
        self._pid = 0

    def start(self, environ: Mapping[str, str]) -> None:
        address = address_from(environ)
        with self._lock:
            if address is None or (self._server is not None and self._pid == os.getpid()):
                return
            self._server = serve_metrics(address)
            self._pid = os.getpid()
            # Only the log has a free port's number.
            level = logging.WARNING if address.endswith(":0") else logging.INFO
            _log.log(level, "ina: metrics at http://%s/metrics", self._server.address)

    @property
    def address(self) -> str | None:
        server = self._server
        return server.address if server is not None and self._pid == os.getpid() else None

    def stop(self) -> None:
        with self._lock:
            if self._server is not None and self._pid == os.getpid():
                self._server.close()
            self._server = None


_process = _Process()


def start_from_environ(environ: Mapping[str, str] = os.environ) -> None:
    """Serve where ``INA_METRICS`` says, if it does and nothing is served there yet.

    Raises MetricsAddressError, MetricsListenError.
    """
    _process.start(environ)


def served_address() -> str | None:
    """``host:port`` that :func:`start_from_environ` serves, if it does."""
    return _process.address


def stop_from_environ() -> None:
    """End what :func:`start_from_environ` began."""
    _process.stop()


def address_from(environ: Mapping[str, str]) -> str | None:
    """Where to serve, if anywhere. Raises MetricsAddressError."""
    wanted = environ.get(ENVIRONMENT, "")
    if not wanted:
        return None
    try:
        host, port = parse_address(wanted)
    except MetricsAddressError:
        raise MetricsAddressError(f"{ENVIRONMENT}={wanted}: want host:port") from None
    local_rank = environ.get("LOCAL_RANK", "")
    if port and local_rank.isdecimal():
        port += int(local_rank)
    if port > 0xFFFF:
        raise MetricsAddressError(f"{ENVIRONMENT}={wanted}: port {port} (+ LOCAL_RANK) is too high")
    return f"{host}:{port}"
