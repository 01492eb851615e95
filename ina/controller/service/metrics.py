"""A controller as Prometheus metrics: jobs, members, slots, and the switch's counters by job.

A scrape comes in a thread of the endpoint; what it needs is gathered in the controller's event
loop, and the switch's counters are read there, asynchronously. A switch that does
not answer in time costs its counters, not the rest.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina import __version__
from ina.controller.errors import SlowWatcherError
from ina.controller.jobs.events import EventBus, Subscription
from ina.controller.service.metric_families import job_families, tenant_families
from ina.controller.service.show import (
    drop_counters,
    jobs_on,
    pool_counters,
    show_job,
    show_member,
    show_tenants,
)
from ina.controller.service.supervisor import Supervisor
from ina.controller.switches.switch import Switch
from ina.metrics import MetricsServer
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError

_log = logging.getLogger(__name__)

SWITCH_DEADLINE_S = 2.0
"""How long a scrape waits for a switch's counters."""
SCRAPE_DEADLINE_S = 8.0
"""How long it waits for all; Prometheus itself gives up after 10 s by default."""
_MAX_EVENTS = 100_000


@dataclass(frozen=True)
class Snapshot:
    """A controller at one moment, without what only the switch knows."""

    controller: pb2.ShowControllerReply
    jobs: list[pb2.Job]
    members: dict[str, list[pb2.Member]] = field(default_factory=dict)
    """By name of the job."""
    foreign_entries: dict[str, int] = field(default_factory=dict)
    """By name of the switch."""
    tenants: list[pb2.Tenant] = field(default_factory=list)


class ControllerCollector(Collector):
    """Asks in the controller's event loop ``loop``; made there, and closed there."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        read_counters: Callable[[], Awaitable[Iterable[pb2.Counter]]],
    ) -> None:
        """``snapshot`` is called in the loop and does not wait. ``read_counters``: the switch's
        counters by job, and drops (no job); raises :class:`SwitchError`.
        """
        self._loop = asyncio.get_running_loop()
        self._snapshot = snapshot
        self._read_counters = read_counters
        self._one_at_a_time = asyncio.Lock()  # scrapes, at the switch
        self._events = Counter({name.lower(): 0 for name in pb2.EventKind.keys()[1:]})
        self._errors = Counter({"switch": 0, "controller": 0})
        self._listeners: set[asyncio.Task[None]] = set()

    def count_events(self, bus: EventBus) -> None:
        """Counts what happens on ``bus`` from now on, until it or this is closed."""
        subscription = bus.subscribe(limit=_MAX_EVENTS)
        listener = self._loop.create_task(self._listen(subscription))
        self._listeners.add(listener)
        listener.add_done_callback(self._listeners.discard)

    async def close(self) -> None:
        """Stops counting events."""
        for listener in self._listeners:
            listener.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)

    def collect(self) -> Iterable[Metric]:
        """All families; for a thread that is not the loop's."""
        gathering = asyncio.run_coroutine_threadsafe(self._gather(), self._loop)
        try:
            yield from gathering.result(SCRAPE_DEADLINE_S)
        except concurrent.futures.TimeoutError:
            gathering.cancel()
            self._errors["controller"] += 1
            _log.warning("metrics: no answer within %g s", SCRAPE_DEADLINE_S)
        yield _counter(
            "ina_controller_scrape_errors",
            "Scrapes in which the switch or the controller did not answer in time.",
            "source",
            self._errors,
        )

    async def _gather(self) -> list[Metric]:
        async with self._one_at_a_time:
            counters = await self._counters()
        snapshot = self._snapshot()
        events = _counter(
            "ina_controller_events", "What has happened to jobs, by kind.", "kind", self._events
        )
        return [
            *_controller_families(snapshot),
            *tenant_families(snapshot.tenants),
            events,
            *job_families(snapshot.jobs, snapshot.members, counters),
        ]

    async def _counters(self) -> list[pb2.Counter]:
        reading = asyncio.ensure_future(self._read_counters())
        try:
            done, _ = await asyncio.wait({reading}, timeout=1.25 * SWITCH_DEADLINE_S)
        finally:
            reading.cancel()
        try:
            if not done:
                raise asyncio.TimeoutError("no answer in time")
            # Cancelled: not we were, but the call, by a connection that was closed meanwhile.
            return list(reading.result())
        except (SwitchError, asyncio.TimeoutError, asyncio.CancelledError) as error:
            self._errors["switch"] += 1
            _log.debug("metrics: the switch's counters: %s", str(error) or "cancelled")
            return []

    async def _listen(self, subscription: Subscription) -> None:
        try:
            with subscription:
                async for event in subscription:
                    self._events[_kind(event.kind)] += 1
        except SlowWatcherError as error:
            _log.error("metrics: events are not counted any more: %s", error)


def _kind(kind: pb2.EventKind) -> str:
    return pb2.EventKind.Name(kind).lower()


def _controller_families(snapshot: Snapshot) -> Iterator[Metric]:
    controller = snapshot.controller
    info = GaugeMetricFamily(
        "ina_controller_info", "Always 1.", labels=["version", "switch", "store"]
    )
    info.add_metric([__version__, controller.switch_addr, controller.store], 1)
    yield info
    states = Counter(dict.fromkeys(("joining", "starting", "running", "leaving"), 0))
    states.update(job.state for job in snapshot.jobs)
    by_state = GaugeMetricFamily("ina_controller_jobs", "Jobs, by state.", labels=["state"])
    for state, count in states.items():
        by_state.add_metric([state], count)
    yield by_state
    for name, text, value in (
        ("primary", "1: it serves; 0: it is a standby.", controller.role == "primary"),
        (
            "config_differs",
            "Other controllers of its store that are configured otherwise.",
            len(controller.differs),
        ),
        ("last_epoch", "The last epoch issued.", controller.last_epoch),
        (
            "start_time_seconds",
            "When it started, in Unix time.",
            controller.started_unix_s,
        ),
    ):
        yield GaugeMetricFamily(f"ina_controller_{name}", text, value=float(value))
    foreign = snapshot.foreign_entries
    for name, text, of_switch in (
        (
            "switch_connected",
            "1: its P4Runtime session with the switch stands.",
            lambda switch: switch.state == "connected",
        ),
        ("slots", "Slots that jobs can have, on the whole switch.", lambda s: s.slots_total),
        ("slots_used", "Slots that no other job can have now.", lambda s: s.slots_used),
        ("election_id", "Its P4Runtime election id.", lambda switch: switch.election_id),
        (
            "foreign_entries",
            "Entries in the controller's tables that it did not write.",
            lambda switch: foreign.get(switch.name, 0),
        ),
    ):
        family = GaugeMetricFamily(f"ina_controller_{name}", text, labels=["switch"])
        for switch in controller.switches:
            family.add_metric([switch.name], float(of_switch(switch)))
        yield family


def _counter(name: str, text: str, label: str, counts: Counter[str]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


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
        {name: len(switch.foreign) for name, switch in term.switches.items()},
        show_tenants(term.registry.admission, jobs),
    )


async def _read_counters(supervisor: Supervisor) -> Iterable[pb2.Counter]:
    term = supervisor.term
    if term is None:
        return []

    async def read(switch: Switch) -> list[pb2.Counter]:
        counters = await pool_counters(switch, jobs_on(term.coordinator, switch))
        return counters + await drop_counters(switch)

    # At once, and each with a deadline of its own: one that is slow costs its counters alone.
    reading = [asyncio.wait_for(read(it), SWITCH_DEADLINE_S) for it in term.switches.values()]
    found = await asyncio.gather(*reading, return_exceptions=True)
    counters, errors = [], []
    for result in found:
        if isinstance(result, SwitchError | asyncio.TimeoutError | asyncio.CancelledError):
            errors.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            counters += result
    if errors and not counters:
        raise errors[0]
    return counters
