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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina import __version__
from ina.controller.errors import SlowWatcherError
from ina.controller.jobs.events import EventBus, Subscription
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
from ina.p4 import names
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError

# By the counter's alias; metric names end in _total (packets) and _bytes_total.
JOB_COUNTERS = {
    "job_contributions": "Contributions that the switch added to a sum",
    "job_results": "Sums that the switch completed",
    "job_replays": "Finished sums that the switch sent again to one worker, or to its parent",
    "job_duplicates": "Contributions that came again before their sum was complete",
    "job_stale": "Contributions older than what their slot holds",
    "job_passed_down": "Results of its parent that the switch admitted to hand them on",
    "job_ecn_marks": "Results that the switch marked for a long queue",
    "job_unaddressed": "Results for a worker without a receiver entry",
    "job_flushes": "Sums that a packet sent again took up before they were complete",
    "job_evictions": "Incomplete sums that went up as another job took the slot over",
    "job_collisions": "Contributions that went up alone, for their slot was another job's",
    "job_bypassed": "Contributions that went up alone, for their lane may claim no slot",
    "job_late": "Contributions that went up alone, for their round was over",
    "job_missed": "Contributions that were sent again, found no sum, and went up alone",
}
DROPS = names.DROPS.rpartition(".")[2]

_OfJob = Callable[[pb2.Job], float]
_OfMember = Callable[[pb2.Member], float]
_OfTenant = Callable[[pb2.Tenant], float]

_JOB_GAUGES: tuple[tuple[str, str, _OfJob], ...] = (
    ("workers", "Workers that the job is for.", lambda job: job.world_size),
    ("joined_workers", "Workers that have joined and not left.", lambda job: len(job.joined)),
    ("slots", "Slots that it has on the switch.", lambda job: job.slots),
    ("window_packets", "Packets in flight that a worker may have.", lambda job: job.window),
    ("priority", "Its priority.", lambda job: job.priority),
    ("epoch", "Its epoch: another one is another incarnation.", lambda job: job.epoch),
    ("stalled", "1: nothing completes, and somebody waits.", lambda job: job.HasField("stall")),
    ("missing_workers", "Workers that the others wait for.", lambda job: len(job.stall.missing)),
    ("stalled_since_seconds", "Since when, in Unix time; 0: it is not stalled.",
     lambda job: job.stall.since_unix_s),
    ("changing", "1: its slots, or its tree, change.", lambda job: job.HasField("remapping")),
)  # fmt: skip
_MEMBER_GAUGES: tuple[tuple[str, str, _OfMember], ...] = (
    ("lease_seconds", "Time until it is taken for dead.", lambda member: member.lease_left_s),
    ("watching", "1: it holds a stream of events.", lambda member: member.watching),
    ("in_flight_packets", "Packets without a result, as it said last.",
     lambda member: member.progress.in_flight),
    ("silent_seconds", "Time without any result while it waited, as it said last.",
     lambda member: member.progress.silent_s),
)  # fmt: skip
_MEMBER_COUNTERS: tuple[tuple[str, str, _OfMember], ...] = (
    ("operations", "Operations done, as it said last.",
     lambda member: member.progress.operations_done),
    ("chunks", "Chunks (packets of values) done, as it said last.",
     lambda member: member.progress.chunks_done),
    ("retransmissions", "Packets it sent again, as it said last.",
     lambda member: member.progress.retransmissions),
    ("losses", "Of those, needed: an earlier copy, or its answer, was lost.",
     lambda member: member.progress.losses),
    ("spurious_resends", "Of those, not needed: sent because a later packet was answered.",
     lambda member: member.progress.spurious_resends),
    ("probes", "Of those, not needed: sent because nothing was heard, as a worker was late.",
     lambda member: member.progress.probes),
    ("packets_sent", "Packets it sent, with those sent again, as it said last.",
     lambda member: member.progress.packets_sent),
    ("corrupted_sums", "Results that were not the sum of what the workers sent, as it said last.",
     lambda member: member.progress.corrupted_sums),
)  # fmt: skip
_TENANT_GAUGES: tuple[tuple[str, str, _OfTenant, _OfTenant], ...] = (
    ("jobs", "Jobs", lambda tenant: tenant.jobs, lambda tenant: tenant.jobs_limit),
    ("slots", "Slots reserved for its jobs", lambda tenant: tenant.slots,
     lambda tenant: tenant.slots_limit),
    ("workers", "Workers that its jobs are for", lambda tenant: tenant.workers,
     lambda tenant: tenant.workers_limit),
)  # fmt: skip
"""What, in words, what it has, and its limit; 0: none."""


def job_families(
    jobs: Sequence[pb2.Job],
    members: Mapping[str, Sequence[pb2.Member]],
    counters: Iterable[pb2.Counter],
) -> Iterator[Metric]:
    """``members`` by name of the job; ``counters`` as the switch has them, drops among them."""
    info = GaugeMetricFamily("ina_job_info", "Always 1.", labels=["job_name", "tenant", "switch"])
    for job in jobs:
        info.add_metric([job.name, job.tenant, job.switch], 1)
    yield info
    for name, text, of_job in _JOB_GAUGES:
        family = GaugeMetricFamily(f"ina_job_{name}", text, labels=["job_name", "tenant"])
        for job in jobs:
            family.add_metric([job.name, job.tenant], float(of_job(job)))
        yield family
    yield from _member_families(GaugeMetricFamily, _MEMBER_GAUGES, members)
    yield from _member_families(CounterMetricFamily, _MEMBER_COUNTERS, members)
    yield from _switch_families(list(counters))


def _member_families(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    rows: Iterable[tuple[str, str, _OfMember]],
    members: Mapping[str, Sequence[pb2.Member]],
) -> Iterator[Metric]:
    for name, text, value in rows:
        family = kind(f"ina_member_{name}", text, labels=["job_name", "rank"])
        for job_name, of_job in members.items():
            for member in of_job:
                family.add_metric([job_name, str(member.rank)], float(value(member)))
        yield family


def _switch_families(counters: list[pb2.Counter]) -> Iterator[Metric]:
    for alias, text in JOB_COUNTERS.items():
        labels = ["job_name", "switch"]
        packets = CounterMetricFamily(f"ina_{alias}", f"{text}.", labels=labels)
        size = CounterMetricFamily(f"ina_{alias}_bytes", f"{text}: bytes.", labels=labels)
        of_jobs = [it for it in counters if it.name == alias and it.job]
        # One may have two numbers, and counters for each.
        for job, switch in dict.fromkeys((it.job, it.switch) for it in of_jobs):
            its = [it for it in of_jobs if (it.job, it.switch) == (job, switch)]
            packets.add_metric([job, switch], sum(it.packets for it in its))
            size.add_metric([job, switch], sum(it.bytes for it in its))
        yield from (packets, size)
    drops = CounterMetricFamily(
        "ina_dataplane_dropped_packets",
        "INA packets that the switch's program refused.",
        labels=["reason", "switch"],
    )
    for counter in counters:
        if counter.name == DROPS:
            drops.add_metric([counter.label, counter.switch], counter.packets)
    yield drops


def tenant_families(tenants: Iterable[pb2.Tenant]) -> Iterator[Metric]:
    """A limit that a tenant does not have is no sample: a ratio to it is none either."""
    all_of_them = list(tenants)
    for name, text, used, limit in _TENANT_GAUGES:
        has = GaugeMetricFamily(f"ina_tenant_{name}", f"{text}.", labels=["tenant"])
        may = GaugeMetricFamily(
            f"ina_tenant_{name}_limit", f"{text}: at most at a time.", labels=["tenant"]
        )
        for tenant in all_of_them:
            has.add_metric([tenant.name], float(used(tenant)))
            if limit(tenant):
                may.add_metric([tenant.name], float(limit(tenant)))
        yield from (has, may)


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
