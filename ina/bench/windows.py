"""Window algorithms on a wire: jobs, and TCP beside them, on one bottleneck of namespaces."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ina.bench import limits
from ina.bench.cpu import machine_s
from ina.bench.dumbbell import Dumbbell
from ina.bench.queue_watch import Passed, QueueWatch
from ina.bench.shared_star import START_UP_S
from ina.bench.spread import Spread, percentile, spread
from ina.bench.star import StarNetwork
from ina.bench.tcp_flow import TcpFlow
from ina.bench.testbed import records
from ina.bench.windows_worker import RankCounts, WindowsOrder
from ina.sim.windows.measure import jain

_WORKER = "ina.bench.windows_worker"
TENSOR_ELEMS = 1 << 18
"""Of jobs that share a link: one that is starved ends soon, too."""
_STAR_ELEMS = 1 << 21
"""Of a job that is alone: eight ranks on two cores have few tensors to begin and to check."""
FAIR_FACTOR = 1.5
"""So many times more than an equal part, or less, is still fair."""
LEAST_JAIN = 0.95
LEAST_SHARE = 0.97
"""Of the limit, of a job that is alone."""


@dataclass(frozen=True)
class Schedule:
    """Of each case."""

    warm_s: float
    """Until windows have found their sizes."""
    round_s: float
    rounds: int
    spoil: int = 0

    @property
    def total_s(self) -> float:
        """Of the sums."""
        return self.warm_s + self.rounds * self.round_s


@dataclass(frozen=True)
class Bottleneck:
    """What is at the bottleneck at once."""

    jobs: int
    tcp: str = ""
    """Congestion control of a TCP flow; empty: there is none."""
    is_star: bool = False
    """Each worker's own link, instead of the dumbbell's."""

    @property
    def name(self) -> str:
        """As "2 jobs, cubic"; "alone" at the dumbbell, "star" elsewhere."""
        if self.is_star:
            return "star"
        jobs = "alone" if self.jobs == 1 else f"{self.jobs} jobs"
        return f"{jobs}, {self.tcp}" if self.tcp else jobs

    @property
    def parties(self) -> int:
        """Who would have equal parts."""
        return self.jobs + (1 if self.tcp else 0)


@dataclass(frozen=True)
class BottleneckRun:
    """Of one case."""

    jobs_mbit_s: list[float]
    """Of each job's tensor."""
    tcp_mbit_s: float | None
    """Of its data; None: there is no flow."""
    passed: Passed | None
    """Through the bottleneck's queue towards the left; None: in a star nobody counts."""
    back: Passed | None = None
    """The same towards the right."""


@dataclass(frozen=True)
class WindowRow:
    """One case on one link with one algorithm: medians of the rounds."""

    link: str
    algorithm: str
    case: str
    workers: int
    """Of each job."""
    jobs_mbit_s: list[float]
    """Of each job's tensor, without headers."""
    job: Spread
    """Of all jobs' mean."""
    limit_mbit_s: float
    """What the link leaves a job that is alone, without headers."""
    limit_share: float
    """Of what the link carries: jobs and TCP, with headers, by its rate."""
    jobs_fair: list[float]
    """Of each job, by an equal part of the link."""
    tcp: Spread | None
    """Of its data, in Mbit/s."""
    tcp_fair: float | None
    tcp_resends: int | None
    jain: Spread | None
    """Of the jobs, if they are several."""
    sent: int
    """Packets of all ranks in all rounds, as the next ones."""
    results: int
    resends: int
    losses: int
    probes: int
    timeouts: int
    marked_share: float
    """Of results, that came marked."""
    dropped_share: float | None
    """Of ina's packets that came to the bottleneck's queues; None: nobody counts."""
    queue_kib: float | None
    """The 99th percentile over time of the longer one."""
    window: float
    """Packets that a rank might have in flight; mean at the ends of rounds."""
    busy: float
    """Share of this machine's cores that were, with all that else ran."""
    rounds: int
    wrong: int
    promises: dict[str, bool]
    """What is asked of the default algorithm, and whether it holds."""


def at_dumbbell(
    net: Dumbbell, case: Bottleneck, schedule: Schedule, on_begin: Callable[[], None] = lambda: None
) -> WindowRow:
    """Raises InaError: a rank failed, or TCP; the deadline passed."""
    plan = net.plan
    hosts = net.network.state.hosts[: 2 * case.jobs]
    with ExitStack() as stack:
        flow = None
        if case.tcp:
            source, sink = net.flows[0]
            flow = TcpFlow(source, sink, case.tcp, Path(net.network.state.folder))
            stack.callback(flow.stop)
        watches = [stack.enter_context(QueueWatch(queue)) for queue in (net.left, net.right)]
        found, busy = _run(net.network.of(hosts), case.jobs, schedule, on_begin)
        if flow is not None:
            flow.check()
    resends = None if flow is None else flow.resends()
    passed, back = (watch.between(found["edges_s"]) for watch in watches)
    parts = _parts(found)
    rounds = [
        BottleneckRun(
            [_goodput_mbit_s(parts[2 * job][number]) for job in range(case.jobs)],
            None if flow is None else _tcp_mbit_s(passed[number], schedule.round_s),
            passed[number],
            back[number],
        )
        for number in range(schedule.rounds)
    ]
    return _measurement(
        plan.link, plan.rate_bit_s, plan.values, str(plan.congestion["algorithm"]), case, 2,
        rounds, parts, found["wrong"], busy, resends,
    )  # fmt: skip


def at_star(
    net: StarNetwork, algorithm: str, values: int, schedule: Schedule,
    on_begin: Callable[[], None] = lambda: None,
) -> WindowRow:  # fmt: skip
    """One job of all hosts, alone. Raises InaError."""
    found, busy = _run(net, 1, schedule, on_begin, _STAR_ELEMS)
    parts = _parts(found)
    assert net.rate_bit_s is not None
    rounds = [
        BottleneckRun([_goodput_mbit_s(parts[0][number])], None, None)
        for number in range(schedule.rounds)
    ]
    return _measurement(
        net.link, net.rate_bit_s, values, algorithm, Bottleneck(1, is_star=True), net.workers,
        rounds, parts, found["wrong"], busy, None,
    )  # fmt: skip


def _run(
    net: StarNetwork,
    jobs: int,
    schedule: Schedule,
    on_begin: Callable[[], None],
    elems: int = TENSOR_ELEMS,
) -> tuple[dict[str, Any], float]:
    """What rank 0 of all said, and how busy this machine was."""
    began = machine_s()

    def on_row(row: dict[str, Any]) -> None:
        nonlocal began
        if "parts" not in row:
            began = machine_s()
            on_begin()

    _, found = records(
        net,
        _WORKER,
        WindowsOrder(jobs=jobs, elems=elems, **asdict(schedule)),
        count=2,
        timeout_s=START_UP_S + 4 * schedule.total_s,
        on_record=on_row,
    )
    busy_s, all_s = (now - then for now, then in zip(machine_s(), began, strict=True))
    return found, busy_s / max(all_s, 1e-9)


def _parts(found: dict[str, Any]) -> list[list[RankCounts]]:
    return [[RankCounts(**part) for part in rank] for rank in found["parts"]]


def _goodput_mbit_s(part: RankCounts) -> float:
    return part.counts["bytes_done"] * 8e-6 / part.seconds


def _tcp_mbit_s(passed: Passed, seconds: float) -> float:
    return passed.rest.bytes * limits.TCP_PAYLOAD_SHARE * 8e-6 / seconds


def _measurement(
    link: str, rate_bit_s: float, values: int, algorithm: str, case: Bottleneck, workers: int,
    rounds: Sequence[BottleneckRun], parts: Sequence[Sequence[RankCounts]], wrong: int, busy: float,
    tcp_resends: int | None,
) -> WindowRow:  # fmt: skip
    payload = limits.ina_payload_share(values)
    rate_mbit_s = rate_bit_s / 1e6
    fair_mbit_s = rate_mbit_s / case.parties

    def count(name: str) -> int:
        return sum(part.counts[name] for rank in parts for part in rank)

    jobs = [spread([it.jobs_mbit_s[job] for it in rounds]).median for job in range(case.jobs)]
    tcp = [it.tcp_mbit_s for it in rounds if it.tcp_mbit_s is not None]
    on_wire = [
        sum(it.jobs_mbit_s) / payload + (it.tcp_mbit_s or 0.0) / limits.TCP_PAYLOAD_SHARE
        for it in rounds
    ]
    ways = [
        [it for it in way if it is not None]
        for way in ([it.passed for it in rounds], [it.back for it in rounds])
    ]
    passed = list(itertools.chain.from_iterable(ways))
    dropped = sum(it.udp.dropped for it in passed)
    offered = sum(it.udp.packets for it in passed) + dropped
    queues_bytes = [
        percentile(list(itertools.chain.from_iterable(it.waiting_bytes for it in way)), 0.99)
        for way in ways
        if way
    ]
    jobs_fair = [it / payload / fair_mbit_s for it in jobs]
    tcp_fair = spread(tcp).median / limits.TCP_PAYLOAD_SHARE / fair_mbit_s if tcp else None
    fairness = spread([jain(it.jobs_mbit_s) for it in rounds]) if case.jobs > 1 else None
    share = spread(on_wire).median / rate_mbit_s
    return WindowRow(
        link=link,
        algorithm=algorithm,
        case=case.name,
        workers=workers,
        jobs_mbit_s=jobs,
        job=spread([statistics.mean(it.jobs_mbit_s) for it in rounds]),
        limit_mbit_s=rate_mbit_s * payload,
        limit_share=share,
        jobs_fair=jobs_fair,
        tcp=spread(tcp) if tcp else None,
        tcp_fair=tcp_fair,
        tcp_resends=tcp_resends,
        jain=fairness,
        sent=count("packets_sent"),
        results=count("packets_received"),
        resends=count("retransmissions"),
        losses=count("losses"),
        probes=count("probes"),
        timeouts=count("timeouts"),
        marked_share=count("ecn_marked") / max(count("packets_received"), 1),
        dropped_share=dropped / max(offered, 1) if passed else None,
        queue_kib=max(queues_bytes) / 1024 if queues_bytes else None,
        window=statistics.mean(part.window for rank in parts for part in rank),
        busy=busy,
        rounds=len(rounds),
        wrong=wrong,
        promises=promises(case, share, jobs_fair, tcp_fair, fairness),
    )


def promises(
    case: Bottleneck,
    share: float,
    jobs_fair: Sequence[float],
    tcp_fair: float | None,
    fairness: Spread | None,
) -> dict[str, bool]:
    """What is asked of the default algorithm in such a case."""
    found = {}
    if case.parties == 1:
        found[f"share of limit at least {LEAST_SHARE:g}"] = share >= LEAST_SHARE
    if fairness is not None:
        found[f"Jain at least {LEAST_JAIN:g}"] = fairness.median >= LEAST_JAIN
    if case.tcp:
        parts = [*jobs_fair, tcp_fair or 0.0]
        found[f"parts within {FAIR_FACTOR:g} times"] = all(
            1 / FAIR_FACTOR <= it <= FAIR_FACTOR for it in parts
        )
    return found
