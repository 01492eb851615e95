"""A scenario for a seed: what the fuzzer tries. Networks that misbehave, jobs of all kinds, faults.

Whatever is drawn ends: faults end at a time after which links are as they should be, and a job has
little to send. What comes out is a :class:`Scenario` like any other, so a seed that fails can be
written down, made smaller, and run again.
"""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.controller.faults import POINTS
from ina.p4.names import DEFAULT_MODE
from ina.protocol.coding import CODINGS, MOST_WORKERS
from ina.protocol.spec import MAX_WORKERS
from ina.protocol.switch_model import EPOCH_BITS
from ina.sim.draw_alone import alone
from ina.sim.draw_bounded import bounded
from ina.sim.draw_far import far
from ina.sim.draw_nics import over_nics
from ina.sim.draw_racks import over_racks
from ina.sim.draw_routing import routed
from ina.sim.draw_shared import dealt, sharing
from ina.sim.draw_streams import streaming
from ina.sim.draw_windows import any_congestion, with_windows
from ina.sim.scenario import (
    DTYPES,
    HOOK_BITS,
    HOOKS,
    SHAPED_KINDS,
    WIRES,
    ControllerSpec,
    FaultSpec,
    HostSpec,
    JobSpec,
    LinkSpec,
    Scenario,
    StragglerSpec,
    TensorSpec,
    TopologySpec,
    Wire,
)
from ina.sim.traffic import PoissonSpec, TcpSpec, TrafficSpec, UdpSpec

FAULTS_END_MS = 20_000.0
"""Afterwards nothing new goes wrong."""
LIMIT_S = 180.0
"""Of virtual time: leases and timeouts take it, with a margin."""
_AS_THEY_ARE = 0.5
"""Of the seeds, in which no job's slots change while it runs."""
_SHARED = 0.4
"""Of the seeds, whose switches run mode ``shared``."""
_STREAMS = 0.25
"""Of the others, whose switches run mode ``stream``."""
_NICS = 0.3
"""Of those that are left, whose hosts have RDMA NICs."""
_ROOTED = 0.2
"""Of tensors."""
_SHAPED = 0.3
"""Of the others."""
_CODED = 0.3
"""Of tensors, which travel in fewer bits."""
_SPARSE = 0.25
"""Of tensors that are for all ranks, of whose blocks some are zero, and are not sent."""
_HOOKED = 0.1
"""Of the jobs."""
_WINDOWS = 0.3
"""Of the seeds, whose jobs' windows change while they run."""
_ROUTED = 0.6
"""Of the seeds over several switches, whose jobs are placed by any policy."""
_OVER_RACKS = 0.5
"""Of the seeds; the others have one switch."""
_ALONE = 0.03
"""Of the seeds, with one job that nothing disturbs."""
_FAR = 0.1
"""Of the seeds, whose round trips are longer than resend timers."""
_EPOCHS = 1 << EPOCH_BITS
_WRAP = 0.5
"""Of the jobs, whose sequence numbers wrap while they run; epochs do in as many seeds."""


def draw(seed: int) -> Scenario:
    """The scenario of a seed. A core has done with it in some seconds."""
    return bounded(_unbounded(seed))


def _unbounded(seed: int) -> Scenario:
    rng = random.Random(f"{seed} alone")
    if rng.random() < _ALONE:
        return replace(alone(rng), name=f"seed-{seed}", limit_s=LIMIT_S)
    rng = random.Random(seed)
    workers = [_workers(rng) for _ in range(rng.choices((1, 2, 3, 4), (10, 4, 2, 1))[0])]
    hosts = rng.randint(max(1, max(workers) // rng.choice((1, 1, 1, 2, 4))), max(workers))
    values = rng.choices((64, 256, 360, 1024), (12, 3, 1, 1))[0]
    jobs = [_job(rng, f"j{i}", count, hosts, values) for i, count in enumerate(workers)]
    link = _link(rng)
    jobs, link = _verified(random.Random(f"{seed} verify"), jobs, link)
    scenario = Scenario(
        name=f"seed-{seed}",
        limit_s=LIMIT_S,
        values=values,
        topology=TopologySpec(hosts=hosts),
        link=link,
        link_back=_link(rng) if rng.random() < 0.3 else None,
        host=HostSpec(
            packet_ns=rng.choice((0, 0, 100, 2_000)),
            kibibyte_ns=rng.choice((0, 0, 100)),
            buffer_kib=rng.choice((32768.0, 32768.0, 208.0, 64.0)),
            trains=rng.random() < 0.2,
        ),
        controller=ControllerSpec(
            lease_s=rng.choice((1.0, 2.0, 5.0)),
            delay_ms=_log(rng, 0.05, 50.0),
            jitter_ms=rng.choice((0.0, 0.0, _log(rng, 0.1, 200.0))),
            loss=rng.choice((0.0, 0.0, 0.0, 0.02, 0.1)),
            standbys=rng.choices((0, 1), (5, 1))[0],
        ),
        congestion=any_congestion(rng),
        multicast=rng.random() < 0.3,
        ecn_packets=rng.choice((0, 0, 5, 30)),
        job=jobs,
        traffic=_traffic(rng, hosts),
        fault=_faults(rng, jobs, hosts),
    )
    resizes = _resizes(random.Random(f"{seed} resizes"), jobs)
    scenario = replace(scenario, fault=[*scenario.fault, *resizes])
    rng = random.Random(f"{seed} racks")
    if rng.random() < _OVER_RACKS:
        scenario = over_racks(rng, scenario)
        if rng.random() < 0.4:
            scenario = replace(scenario, link_up=_link(rng))
    rng = random.Random(f"{seed} far")
    if rng.random() < _FAR:
        scenario = far(rng, scenario)
    rng = random.Random(f"{seed} shared")
    if rng.random() < _SHARED:
        scenario = sharing(rng, scenario, _link(rng))
        scenario = dealt(random.Random(f"{seed} aggregators"), scenario)
    scenario = _wrapping(random.Random(f"{seed} wraps"), scenario)
    scenario = _with_kinds(seed, scenario)
    rng = random.Random(f"{seed} routing")
    if rng.random() < _ROUTED:
        scenario = routed(rng, scenario, FAULTS_END_MS)
    rng = random.Random(f"{seed} jobs' windows")
    return with_windows(rng, scenario) if rng.random() < _WINDOWS else scenario


def _workers(rng: random.Random) -> int:
    return rng.choice((1, 2, 2, 2, 3, 3, 4, 4, 5, 8, 16, MAX_WORKERS))


def _log(rng: random.Random, least: float, most: float) -> float:
    """As likely between 1 and 10 as between 10 and 100."""
    return float(f"{least * (most / least) ** rng.random():.3g}")


def _link(rng: random.Random) -> LinkSpec:
    """From a clean one to one that nobody would call a link."""
    if rng.random() < 0.15:
        return LinkSpec(queue_kib=1024.0)
    some = rng.random

    def sometimes(value: float, share: float = 0.4) -> float:
        return value if some() < share else 0.0

    reordering = sometimes(_log(rng, 0.001, 0.3))
    return LinkSpec(
        rate_gbit=rng.choice((0.1, 1.0, 10.0, 100.0)),
        delay_us=_log(rng, 0.5, 20_000.0) if some() < 0.3 else _log(rng, 0.5, 200.0),
        jitter_us=sometimes(_log(rng, 0.1, 5_000.0)),
        loss=sometimes(_log(rng, 0.0005, 0.2), 0.6),
        burst_from=sometimes(_log(rng, 0.0005, 0.01), 0.2),
        burst_to=_log(rng, 0.05, 0.9),
        burst_loss=rng.choice((1.0, 0.5)),
        duplication=sometimes(_log(rng, 0.001, 0.2)),
        reordering=reordering,
        reordering_us=_log(rng, 10.0, 2_000_000.0) if reordering else 0.0,
        corruption=sometimes(_log(rng, 0.0005, 0.1), 0.3),
        queue_kib=rng.choice((1024.0, 256.0, 64.0, 16.0)),
        marking=rng.choice(("none", "none", "step", "red")),
        mark_kib=rng.choice((8.0, 32.0)),
        red_least_kib=8.0,
        red_most_kib=64.0,
    )


def _job(rng: random.Random, name: str, workers: int, hosts: int, values: int) -> JobSpec:
    slots = rng.choice((0, 2, 4, 8, 16, 64, 256))
    window = max(1, slots // 2)
    tensors = []
    for _ in range(rng.randint(1, 4)):
        # Around the window: less than it, just it, a few of it; and lengths that fill no packet.
        chunks = rng.choice((1, 2, window, window + 1, 3 * window, rng.randint(1, 40)))
        elems = min(max(0, chunks * values - rng.choice((0, 0, 1, values // 2, values))), 20_000)
        tensors.append(
            TensorSpec(
                elems=elems,
                dtype=rng.choice(DTYPES),
                op=rng.choice(("sum", "sum", "avg")),
                count=rng.choice((1, 1, 1, 3)),
            )
        )
    return JobSpec(
        name=name,
        workers=workers,
        hosts=[f"h{rng.randint(1, hosts)}" for _ in range(workers)],
        steps=rng.randint(1, 6),
        tensors=tensors,
        compute_ms=rng.choice((0.0, 0.0, 1.0, _log(rng, 0.1, 500.0))),
        straggler=StragglerSpec(
            share=rng.random(), mean_ms=rng.choice((0.0, 0.0, _log(rng, 0.1, 1_000.0)))
        ),
        slots=slots,
        at_ms=[0.0 if name == "j0" else _log(rng, 0.1, 2_000.0)],
    )


def _with_kinds(seed: int, scenario: Scenario) -> Scenario:
    """Sums of all kinds."""
    scenario = _rooted(random.Random(f"{seed} roots"), scenario)
    scenario = _coded(random.Random(f"{seed} wires"), scenario)
    scenario = _thinned(random.Random(f"{seed} densities"), scenario)
    scenario = _hooked(random.Random(f"{seed} hooks"), scenario)
    scenario = _shaped(random.Random(f"{seed} shapes"), scenario)
    rng = random.Random(f"{seed} streams")
    if scenario.switch.mode == DEFAULT_MODE and rng.random() < _STREAMS:
        scenario = streaming(rng, scenario)
    rng = random.Random(f"{seed} nics")
    has_nics = scenario.switch.mode == DEFAULT_MODE and rng.random() < _NICS
    return over_nics(rng, scenario) if has_nics else scenario


def _rooted(rng: random.Random, scenario: Scenario) -> Scenario:
    """Some tensors are for one rank alone."""
    jobs = [
        replace(
            job,
            tensors=[
                replace(it, root=rng.randrange(job.workers)) if rng.random() < _ROOTED else it
                for it in job.tensors
            ],
        )
        for job in scenario.job
    ]
    return replace(scenario, job=jobs)


def _shaped(rng: random.Random, scenario: Scenario) -> Scenario:
    """Some tensors are gathered, or scattered."""

    def shaped(it: TensorSpec, workers: int) -> TensorSpec:
        kind = rng.choice(SHAPED_KINDS)
        root = rng.randrange(workers)
        if it.density is not None or it.root is not None or rng.random() >= _SHAPED:
            return it
        # All ranks' parts together have what the tensor had, or more where that was hardly any.
        parts = workers if kind in ("reduce_scatter", "all_gather") else 1
        elems = -(-it.elems // parts)
        return replace(
            it,
            kind=kind,
            root=root if kind == "broadcast" else None,
            elems=0 if kind == "barrier" else elems,
        )

    jobs = [
        job
        if job.hook or not job.check
        else replace(job, tensors=[shaped(it, job.workers) for it in job.tensors])
        for job in scenario.job
    ]
    return replace(scenario, job=jobs)


def _coded(rng: random.Random, scenario: Scenario) -> Scenario:
    """Some tensors travel in fewer bits."""

    def wire(workers: int) -> Wire:
        fit = [name for name in WIRES if MOST_WORKERS[CODINGS[name].bits] >= workers]
        return rng.choice(fit) if rng.random() < _CODED else "32"

    jobs = [
        replace(job, tensors=[replace(it, wire=wire(job.workers)) for it in job.tensors])
        for job in scenario.job
    ]
    return replace(scenario, job=jobs)


def _thinned(rng: random.Random, scenario: Scenario) -> Scenario:
    """Some tensors have blocks of zeros."""

    def thinned(it: TensorSpec) -> TensorSpec:
        density = rng.choice((0.0, 1.0, _log(rng, 0.001, 1.0), _log(rng, 0.01, 1.0)))
        block_elems = rng.choice((scenario.values, scenario.values, 7, rng.randint(2, 1_000)))
        if it.root is not None or rng.random() >= _SPARSE:
            return it
        return replace(it, density=density, block_elems=block_elems)

    jobs = [replace(job, tensors=[thinned(it) for it in job.tensors]) for job in scenario.job]
    return replace(scenario, job=jobs)


def _hooked(rng: random.Random, scenario: Scenario) -> Scenario:
    """Some jobs' gradients go by a hook."""

    def hooked(job: JobSpec) -> JobSpec:
        fit = [name for name in HOOKS if MOST_WORKERS[HOOK_BITS[name]] >= job.workers]
        hook = rng.choice(fit)
        if rng.random() >= _HOOKED:
            return job
        buckets = [TensorSpec(elems=max(it.elems, 1), count=it.count) for it in job.tensors]
        return replace(job, hook=hook, tensors=buckets)

    return replace(scenario, job=[hooked(job) for job in scenario.job])


def _verified(
    rng: random.Random, jobs: list[JobSpec], link: LinkSpec
) -> tuple[list[JobSpec], LinkSpec]:
    """How the jobs verify their sums; where all do, no frame check need find what is damaged."""
    jobs = [
        replace(job, verify=rng.choice(("off", "off", "", "accidents", "keyed"))) for job in jobs
    ]
    if all(job.verify != "off" for job in jobs) and rng.random() < 0.6:
        link = replace(link, frame_check=False, corruption=_log(rng, 0.0005, 0.05))
    return jobs, link


def _wrapping(rng: random.Random, scenario: Scenario) -> Scenario:
    """Numbers of packets and of epochs that come to their ends, at once or after a few."""
    jobs = [
        replace(job, wraps_after=rng.choice((1, 2, round(_log(rng, 1.0, 500.0)))))
        if rng.random() < _WRAP
        else job
        for job in scenario.job
    ]
    last = rng.choice((0, 0, _EPOCHS - 1, _EPOCHS - rng.randint(2, 9)))
    return replace(scenario, job=jobs, controller=replace(scenario.controller, last_epoch=last))


def _traffic(rng: random.Random, hosts: int) -> list[TrafficSpec]:
    """Not for long: it is there to fill queues, and to be left alone."""
    if hosts < 2 or rng.random() < 0.8:
        return []
    stop_ms = _log(rng, 1.0, 50.0)
    if rng.random() < 0.5:
        return [
            UdpSpec(source="h1", destination="h2", rate_gbit=_log(rng, 0.01, 0.2), stop_ms=stop_ms)
        ]
    tcp = TcpSpec(algorithm=rng.choice(("cubic", "dctcp")))
    return [
        PoissonSpec(
            load=_log(rng, 0.01, 0.1), sizes="fixed", tcp=tcp, stop_ms=stop_ms, most_flows=30
        )
    ]


def _faults(rng: random.Random, jobs: list[JobSpec], hosts: int) -> list[FaultSpec]:
    faults = []
    for _ in range(rng.choices((0, 1, 2, 3, 5), (6, 4, 3, 2, 1))[0]):
        what = rng.choice(
            ("link_down", "pause", "crash", "crash", "power_cycle", "controller_kill",
             "controller_kill", "controller_cut")
        )  # fmt: skip
        job = rng.choice(jobs)
        where = {
            "link_down": f"h{rng.randint(1, hosts)}-s1",
            "pause": f"{job.name}/{rng.randrange(job.workers)}",
            "crash": f"{job.name}/{rng.randrange(job.workers)}",
            "power_cycle": "s1",
        }.get(what, "")
        point = rng.choice(POINTS) if what == "controller_kill" and rng.random() < 0.7 else ""
        faults.append(
            FaultSpec(
                what=what,  # type: ignore[arg-type]
                where=where,
                at_ms=0.0 if point else _log(rng, 0.1, FAULTS_END_MS / 4),
                for_ms=_log(rng, 0.1, FAULTS_END_MS / 4),
                point=point,
            )
        )
    return faults


def _resizes(rng: random.Random, jobs: list[JobSpec]) -> list[FaultSpec]:
    """Of a job, to and fro: sizes for which there is room beside what it has, and others."""
    if rng.random() < _AS_THEY_ARE:
        return []
    job, every_ms = rng.choice(jobs), _log(rng, 2.0, 200.0)
    sizes = rng.sample((2, 4, 8, 16, 64, 256, 1024, 5000, 8000), 3)
    return [
        FaultSpec(what="resize", where=job.name, every_ms=every_ms, slots=slots) for slots in sizes
    ]
