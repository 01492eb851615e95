"""A controller's Prometheus endpoint: what the collector needs, from whoever is primary now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from ina.controller.metrics import ControllerCollector, Snapshot
from ina.controller.show import drop_counters, pool_counters, show_job, show_member, show_tenants
from ina.controller.supervisor import Supervisor
from ina.metrics import MetricsServer
from ina.rpc import controller_pb2 as pb2


def serve_metrics(supervisor: Supervisor, address: str, undo: AsyncExitStack) -> str:
    """Serves at ``host:port`` until ``undo`` is closed; returns where, with the actual port.

    To be called in the controller's event loop, before the supervisor starts: events count from its
    first term on. Raises :class:`MetricsAddressError`, :class:`MetricsListenError`.
    """
    collector = ControllerCollector(
        lambda: _snapshot(supervisor), lambda: _read_counters(supervisor)
    )
    undo.push_async_callback(collector.close)
    server = MetricsServer(address, [collector])
    undo.push_async_callback(_close, server)
    supervisor.on_term = lambda term: collector.count_events(term.coordinator.events)
    return server.address


async def _close(server: MetricsServer) -> None:
    """In a thread: a scrape under way waits for this loop."""
    await asyncio.to_thread(server.close)


def _snapshot(supervisor: Supervisor) -> Snapshot:
    term = supervisor.term
    if term is None:  # a standby knows no jobs
        return Snapshot(supervisor.describe(), [])
    jobs = term.coordinator.jobs()
    return Snapshot(
        supervisor.describe(),
        [show_job(job, term.detector) for job in jobs],
        {
            job.name: [show_member(job, rank, term.detector) for rank in sorted(job.members)]
            for job in jobs
        },
        len(term.coordinator.foreign),
        show_tenants(term.registry.admission, jobs),
    )


async def _read_counters(supervisor: Supervisor) -> Iterable[pb2.Counter]:
    term = supervisor.term
    if term is None:
        return []
    jobs = {job.number: job for job in term.coordinator.jobs()}
    return [*await pool_counters(term.writer, jobs), *await drop_counters(term.writer)]
