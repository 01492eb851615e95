"""Runs a scenario: builds the network, starts what is in it, lets time pass, and reports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from ina import modes
from ina.controller.config import JobsConfig, RoutingConfig, TenantConfig, WindowsConfig
from ina.errors import InaError
from ina.extension import sim as native
from ina.host.errors import OperationTimeoutError
from ina.modes.patience import STEPS as MAX_PRIORITY
from ina.p4 import names
from ina.sim.causes import cause_of_end, spoils_sums
from ina.sim.errors import NothingHappensError, VirtualTimeError
from ina.sim.fabric import SimSwitch, VirtualFabric
from ina.sim.flows import slowdowns
from ina.sim.grants import wrong_grants
from ina.sim.job_run import Incarnation, JobRun
from ina.sim.leftovers import left_at
from ina.sim.loop import VirtualLoop
from ina.sim.messages import Travel
from ina.sim.mishaps import Mishaps
from ina.sim.pace import too_slow
from ina.sim.placing import job_rules, placed
from ina.sim.plane import ControlPlane, config_of
from ina.sim.report import PortReport, Report, TrafficReport, Violation
from ina.sim.sampler import Sampler
from ina.sim.scenario import Scenario
from ina.sim.traffic import Flows, UdpStream, add_traffic

MULTICAST = "239.192.0.0/24"
SETTLE_S = 15.0
"""After the last job has ended: until switch and controller must have nothing of any."""
TAKE_OVER_S = 45.0
"""Before that, at most: until a controller that was killed has a role again. Where its messages are
lost, a connection to a switch may take its deadline several times."""
PATIENCE_S = 15.0
"""On links that lose nothing any more, whatever was lost has come in so long: resends are no
farther apart than some seconds."""
_LOOK_S = 0.25

Watch = Callable[
    [VirtualFabric, Mapping[str, JobRun], Sequence[Flows | UdpStream]], Coroutine[Any, Any, None]
]
"""Looks at a run from its beginning on; the run ends with it, whatever is under way."""


class Simulation:
    """One run of a scenario with a seed; the same both times gives the same run."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        *,
        trace: native.Trace | None = None,
        mend_at_s: float | None = None,
        samples: bool = False,
        told: Callable[[float], None] = lambda _virtual_s: None,
        watch: Watch | None = None,
    ) -> None:
        """Args:
        scenario: as :func:`ina.sim.reading.check` takes it.
        seed: of everything that happens by chance.
        trace: is told of each frame.
        mend_at_s: from when on nothing goes wrong any more; None: it may until the end.
        samples: whether to look at windows and queues now and then, for a plot.
        told: of virtual time, now and then.
        watch: looks at it; None: nobody does, and jobs go on to their end.
        """
        self.scenario = scenario
        self.seed = seed
        self.violations: list[Violation] = []
        self.events: list[str] = []
        self.control_log: list[str] = []
        """What became of each control message."""
        self.log: list[str] = []
        """What the controllers logged."""
        self.jobs: dict[str, JobRun] = {}
        self.report: Report | None = None
        """Once it has run."""
        self._trace = trace
        self._mend_at_s = mend_at_s
        self._told = told
        self._samples = samples
        self._watch = watch
        self._loop: VirtualLoop | None = None
        self._plane: ControlPlane | None = None

    def run(self) -> Report:
        """All of it. Raises :class:`~ina.sim.errors.ScenarioError`, and
        :class:`~ina.congestion.WindowError`, which a window in Python ends it with."""
        with _logged_to(self.logged):
            self.report = self._run()
        return self.report

    def _run(self) -> Report:
        began_s = time.perf_counter()
        scenario = self.scenario
        topology = scenario.build_topology()
        own = scenario.own_window()
        with (
            VirtualFabric(
                topology,
                seed=self.seed,
                values=scenario.values,
                mode=scenario.switch.mode,
                switch=scenario.switch.setup(),
            ) as fabric,
            VirtualLoop(fabric.network, limit_s=scenario.limit_s + TAKE_OVER_S + SETTLE_S) as loop,
        ):
            self._loop = loop
            if self._trace is not None:
                fabric.network.set_trace(self._trace)
            sampler = Sampler(scenario, fabric)
            traffic = add_traffic(fabric, scenario.traffic)
            control = scenario.controller
            config = config_of(
                fabric,
                jobs=JobsConfig(
                    lease_s=control.lease_s,
                    sizing=control.sizing,
                    count=control.count,
                    aggregators=control.aggregators,
                ),
                congestion=None if own is not None else scenario.congestion or None,
                multicast=MULTICAST if scenario.multicast else "",
                switch={
                    "shared_slots": scenario.switch.shared_slots,
                    "slot_age_us": scenario.switch.slot_age_us,
                },
                makes_results=scenario.switch.aggregators,
                tenants={
                    name: TenantConfig(slots=slots, max_priority=MAX_PRIORITY)
                    for name, slots in control.quotas.items()
                },
                windows=WindowsConfig(caps=control.caps, slack=control.slack),
                placement=control.placement if fabric.joined.links else "",
                routing=RoutingConfig(stripes=control.stripes),
                job_rules=job_rules(scenario.job),
            )
            travel = Travel(
                control.delay_ms / 1e3,
                (control.delay_ms + control.jitter_ms) / 1e3,
                control.loss,
            )
            with ControlPlane(
                loop,
                fabric,
                seed=self.seed,
                controllers=1 + control.standbys,
                config=config,
                travel=travel,
                last_epoch=control.last_epoch,
                on_program=lambda switch: self._program(fabric, switch),
                on_insert=self._look_at,
            ) as plane:
                self._plane = plane
                try:
                    loop.run_until_complete(self._all(plane, sampler, traffic))
                except (NothingHappensError, VirtualTimeError) as error:
                    if self._mend_at_s is not None:
                        self._violate(Violation("no end", str(error)))
                    else:
                        self._event(str(error))
                self.control_log = plane.log.lines
            report = self._report(fabric, sampler, traffic, time.perf_counter() - began_s)
        if self._trace is not None:
            self._trace.flush()
        return report

    async def _all(
        self, plane: ControlPlane, sampler: Sampler, traffic: Sequence[Flows | UdpStream]
    ) -> None:
        scenario = self.scenario
        embedded = {it.job: it.name for it in scenario.aggregator}
        for spec in placed(scenario.job, plane.fabric.topology):
            runs = embedded.get(spec.name, "") if modes.of(spec.mode).needs_aggregator else ""
            self.jobs[spec.name] = JobRun(
                spec,
                scenario.host,
                plane,
                self.seed,
                self._violate,
                self._event,
                aggregator=runs,
                congestion=scenario.own_window(),
            )
        mishaps = Mishaps(plane, self.jobs, self.seed, self._event)
        background: list[Coroutine[Any, Any, None]] = [
            *(controller.keep() for controller in plane.controllers),
            *(mishaps.happen(i, fault) for i, fault in enumerate(scenario.fault)),
            self._tell(),
        ]
        if self._samples:
            background.append(sampler.keep_looking(self.jobs))
        if self._mend_at_s is not None:
            background.append(self._mend(plane, mishaps))
        tasks = [asyncio.ensure_future(work) for work in background]
        running = [job.run(at_ms) for job in self.jobs.values() for at_ms in job.spec.at_ms]
        if self._watch is not None:
            watch = self._watch(plane.fabric, self.jobs, traffic)
            await (_until_first(watch, asyncio.gather(*running)) if running else watch)
        else:
            await asyncio.gather(*running)
            if not running:  # other traffic alone
                await asyncio.sleep(scenario.limit_s)
        if self._mend_at_s is not None:
            self._judge()
            await self._settle(plane)
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, InaError):
                raise result

    async def _mend(self, plane: ControlPlane, mishaps: Mishaps) -> None:
        assert self._mend_at_s is not None
        await asyncio.sleep(self._mend_at_s)
        mishaps.mend_links()
        plane.set_travel(Travel())
        for controller in plane.controllers:
            controller.spare()  # a point that it has not come to is no fault any more

    async def _tell(self) -> None:
        assert self._loop is not None
        while True:
            await asyncio.sleep(self.scenario.limit_s / 1000)
            self._told(self._loop.time())

    def _judge(self) -> None:
        """No job may have ended without a cause, nor has a slot held what was not a sum."""
        for job in self.jobs.values():
            corrupted = sum(one.total("corrupted") for one in job.incarnations)
            if corrupted and not spoils_sums(self.scenario, job.spec):
                what = f"job {job.name}: {corrupted} results failed their check, and no bit flips"
                self._violate(Violation("wrong sum", what))
            for one in job.incarnations:
                mended = self._waited_on_good_links(one)
                if one.error and not cause_of_end(
                    self.scenario, job.spec, error=one.error, links_were_mended=mended
                ):
                    what = f"job {job.name}: {one.error}"
                    self._violate(Violation("ended without a cause", what))
                    break
            if what := too_slow(self.scenario, job):
                self._violate(Violation("too slow", what))

    def _waited_on_good_links(self, incarnation: Incarnation) -> bool:
        """Whether it gave up waiting for a result, long after links have been mended."""
        gave_up = OperationTimeoutError.__name__ in incarnation.error
        return gave_up and incarnation.ended_s >= (self._mend_at_s or 0.0) + PATIENCE_S

    async def _settle(self, plane: ControlPlane) -> None:
        """Nothing of the jobs may be left: on a switch, at the controller."""
        assert self._loop is not None
        begun_s = max(self._loop.time(), self._mend_at_s or 0.0)
        until_s, most_s = begun_s + SETTLE_S, begun_s + TAKE_OVER_S + SETTLE_S
        left = "the controller has no role"
        while self._loop.time() < until_s:
            await asyncio.sleep(_LOOK_S)
            jobs = plane.jobs()
            if jobs is None:  # the workers' leases begin when it has one
                until_s = min(self._loop.time() + SETTLE_S, most_s)
                continue
            left = "; ".join(
                [f"job {job.name} is {job.state.value}" for job in jobs] + left_at(plane)
            )
            if not left:
                return
        self._violate(Violation("left behind", f"{SETTLE_S:g} s after all jobs: {left}"))

    def _program(self, fabric: VirtualFabric, switch: SimSwitch) -> None:
        """What a switch has besides jobs: how ordinary frames go, and above what it marks."""
        switch.insert(fabric.forwarding(switch.name))
        if self.scenario.ecn_packets and switch.pipeline is not None:
            switch.pipeline.set_default(
                names.ECN_THRESHOLD, names.MARK_ABOVE, [self.scenario.ecn_packets]
            )

    def _look_at(self, switch: SimSwitch) -> None:
        """A job may have been let in there."""
        if self._mend_at_s is not None and self._plane is not None:
            for what in wrong_grants(self._plane, switch, self.scenario.controller.quotas):
                self._violate(Violation("wrong slots", what))

    def logged(self, record: logging.LogRecord) -> None:
        """A line of a controller's log, at virtual time."""
        at_s = 0.0 if self._loop is None else self._loop.time()
        self.log.append(f"{at_s:.6f} s {record.levelname} {record.getMessage()}")
        if record.exc_info and record.exc_info[1] is not None and self._mend_at_s is not None:
            error = record.exc_info[1]
            what = f"{record.getMessage()}: {type(error).__name__}: {error}"
            if all(found.what != what for found in self.violations):
                self._violate(Violation("controller failed", what))

    def _violate(self, violation: Violation) -> None:
        self.violations.append(violation)
        self._event(f"VIOLATION: {violation}")

    def _event(self, what: str) -> None:
        at_s = 0.0 if self._loop is None else self._loop.time()
        self.events.append(f"{at_s:.6f} s: {what}")

    def _report(
        self,
        fabric: VirtualFabric,
        sampler: Sampler,
        traffic: list[Flows | UdpStream],
        wall_s: float,
    ) -> Report:
        virtual_s = fabric.network.now_ns / 1e9
        return Report(
            scenario=self.scenario.name,
            seed=self.seed,
            virtual_s=virtual_s,
            wall_s=wall_s,
            packet_hops=fabric.network.hops,
            jobs=[it for job in self.jobs.values() for it in job.reports(self.scenario)],
            ports=[_port_report(fabric, name, virtual_s) for name in fabric.ports],
            traffic=[_traffic_report(one) for one in traffic],
            events=self.events,
            violations=self.violations,
            samples=sampler.samples,
            sums_checked=sum(job.sums_checked for job in self.jobs.values()),
        )


async def _until_first(watch: Coroutine[Any, Any, None], jobs: asyncio.Future[Any]) -> None:
    """Whichever ends first ends the other; what one of them raises is raised."""
    looking = asyncio.ensure_future(watch)
    done, left = await asyncio.wait([looking, jobs], return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for one in done:
        one.result()


class _Hearer(logging.Handler):
    def __init__(self, hear: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        self._hear(record)


@contextlib.contextmanager
def _logged_to(hear: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Meanwhile what ina logs goes there, and nowhere else."""
    logger = logging.getLogger("ina")
    handler = _Hearer(hear)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    others = [it for it in logger.handlers if it is not handler]
    for other in others:
        logger.removeHandler(other)
    try:
        yield
    finally:
        for other in others:
            logger.addHandler(other)
        logger.propagate = propagates
        logger.setLevel(level)
        logger.removeHandler(handler)


def _port_report(fabric: VirtualFabric, name: str, virtual_s: float) -> PortReport:
    counters = fabric.ports[name].counters
    rate = fabric.ports[name].link.bits_per_s
    sent = counters.sent_packets
    return PortReport(
        name=name,
        packets=counters.offered_packets,
        utilisation=counters.sent_bytes * 8 / rate / virtual_s if rate and virtual_s else 0.0,
        longest_queue_bytes=counters.longest_bytes,
        mean_wait_s=counters.waited_ns / 1e9 / sent if sent else 0.0,
        full_packets=counters.full_packets,
        lost_packets=counters.lost_packets,
        marked_packets=counters.marked_packets,
    )


def _traffic_report(traffic: Flows | UdpStream) -> TrafficReport:
    if isinstance(traffic, UdpStream):
        counters = traffic.counters
        received = counters.received_packets
        mean_s = counters.delay_ns / 1e9 / received if received else 0.0
        return TrafficReport(
            traffic.name, 0, 0, 0, 0.0, 0.0, [], counters.sent_packets, received, mean_s
        )
    flows = traffic.completions()
    times_s = sorted(flow.duration_ns / 1e9 for flow in flows if flow.duration_ns is not None)
    done = len(times_s)
    return TrafficReport(
        name=traffic.name,
        flows_done=done,
        flows_given_up=len(flows) - done,
        flows_active=traffic.active,
        completion_mean_s=sum(times_s) / done if done else 0.0,
        completion_p99_s=times_s[min(done - 1, int(0.99 * done))] if done else 0.0,
        slowdowns=slowdowns(flows),
        datagrams_sent=0,
        datagrams_received=0,
        datagram_mean_s=0.0,
    )
