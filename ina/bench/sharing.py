"""Several jobs on a switch whose slots are enough for one: what each way to have them brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench import limits
from ina.bench.plot import Axis, Panel, Point, curves
from ina.bench.report import Ratio
from ina.bench.shared_star import START_UP_S
from ina.bench.sharing_worker import SharingOrder
from ina.bench.spread import spread
from ina.bench.testbed import Testbed, records
from ina.protocol.spec import VALUE_BYTES

WAYS = ("shared", "static", "queued", "aggregator")
"""Mode shared; mode pool with as many slots for each job; mode pool, one job after the other, each
with all slots; mode shared with one slot for all, so that sums are made at the aggregator."""
_WORKER = "ina.bench.sharing_worker"
_SLOWEST = 40.0
"""So many times what all jobs' steps take one after the other a round may take."""


@dataclass(frozen=True)
class SharingCase:
    """What is the same in all ways."""

    jobs: int
    workers: int
    """Of each job."""
    elems: int
    """int32, of a step's tensor."""
    steps: int
    """Of a job, in a round."""
    rounds: int
    compute: float
    """Share of a step, below 1, that a job computes where its tensor has the whole link."""
    slots: int
    values: int
    rate_bit_s: float
    """Of a host's link."""
    aggregator_bit_s: float
    seed: int = 1
    spoil: int = 0

    @property
    def wire_s(self) -> float:
        """A tensor on a host's link."""
        wire_bytes = limits.ina_wire_bytes(self.elems, self.values)
        return limits.link_s(wire_bytes, self.rate_bit_s)

    @property
    def compute_s(self) -> float:
        """Of a step, on average."""
        return self.wire_s * self.compute / (1 - self.compute)


@dataclass(frozen=True)
class SharingRow:
    """One way, of a number of jobs."""

    jobs: int
    way: str
    goodput_gb_s: float
    """Of all jobs: bytes of tensors, each counted once, ÷ the time until the last job was done.
    Median of the rounds."""
    low_gb_s: float
    """First quartile."""
    high_gb_s: float
    rounds: int
    gain: float | None
    """goodput ÷ that of way ``static`` in the same round; median. None: that was not measured."""
    gain_low: float | None
    gain_high: float | None
    limit_gb_s: float
    """The most that links let pass, with all that jobs compute."""
    limit_share: float
    job_s: float
    """From the common beginning to a job's end; mean of all jobs, median of the rounds."""
    on_switch: float | None
    """Share of packets that were added up at the switch; of mode ``shared``."""
    aggregator_packets: float | None
    """That came to the aggregator for a sum, which has as many parts as a job has workers."""
    resends: int
    """Packets sent again, of all ranks and rounds. The next three: what became of them."""
    losses: int
    spurious_resends: int
    probes: int
    busy: float
    """Share of this machine's cores that were, with all that else ran; median."""
    wrong: int
    """Values of all sums, of all ranks and rounds."""


def measure(
    star: Testbed,
    case: SharingCase,
    ways: Sequence[str],
    on_round: Callable[[str, float], None],
) -> list[SharingRow]:
    """All rounds, in each the ways in turn; ``on_round`` gets a way and its goodput in GB/s.

    Raises InaError: a rank failed; the deadline passed.
    """
    alone_s = case.jobs * case.steps * (case.wire_s + case.compute_s)
    count = case.rounds * len(ways)
    rounds = records(
        star,
        _WORKER,
        SharingOrder(
            jobs=case.jobs,
            elems=case.elems,
            steps=case.steps,
            rounds=case.rounds,
            slots=case.slots,
            seed=case.seed,
            spoil=case.spoil,
            compute_s=case.compute_s,
            ways=ways,
        ),
        count=count,
        timeout_s=START_UP_S + count * (_SLOWEST * alone_s + 10),
        on_record=lambda one: on_round(one["way"], _goodput_gb_s(case, one)),
    )
    return [_measurement(case, way, rounds) for way in ways]


def _goodput_gb_s(case: SharingCase, one: dict[str, Any]) -> float:
    total_bytes = case.jobs * case.steps * case.elems * VALUE_BYTES
    return total_bytes / float(one["seconds"]) / 1e9


def _measurement(case: SharingCase, way: str, rounds: Sequence[dict[str, Any]]) -> SharingRow:
    mine = [it for it in rounds if it["way"] == way]
    static = [it for it in rounds if it["way"] == "static"]
    goodput = spread([_goodput_gb_s(case, it) for it in mine])
    gains = None
    if static:
        pairs = zip(mine, static, strict=True)
        gains = spread([other["seconds"] / one["seconds"] for one, other in pairs])
    limit_gb_s = _limit_gb_s(case, way)
    came, sums = (sum(it[name] for it in mine) for name in ("came", "sums"))
    return SharingRow(
        jobs=case.jobs,
        way=way,
        goodput_gb_s=goodput.median,
        low_gb_s=goodput.low,
        high_gb_s=goodput.high,
        rounds=goodput.count,
        gain=gains.median if gains else None,
        gain_low=gains.low if gains else None,
        gain_high=gains.high if gains else None,
        limit_gb_s=limit_gb_s,
        limit_share=goodput.median / limit_gb_s,
        job_s=spread([sum(it["job_s"]) / case.jobs for it in mine]).median,
        on_switch=sum(it["summed"] for it in mine) / came if came else None,
        aggregator_packets=sum(it["got"] for it in mine) / sums if sums else None,
        resends=sum(it["resends"] for it in mine),
        losses=sum(it["losses"] for it in mine),
        spurious_resends=sum(it["spurious_resends"] for it in mine),
        probes=sum(it["probes"] for it in mine),
        busy=spread([it["busy"] for it in mine]).median,
        wrong=sum(it["wrong"] for it in mine),
    )


def _limit_gb_s(case: SharingCase, way: str) -> float:
    """Of all jobs together, with the mean of what they compute.

    A job's tensors cross its hosts' links one after the other, and what it computes is between
    them. The aggregator's link has each job's sums up and its results down, or all parts up.
    """
    step_s = case.wire_s + case.compute_s
    at_once = 1 if way == "queued" else case.jobs
    tensor_gb = case.elems * VALUE_BYTES / 1e9
    found = at_once * tensor_gb / step_s
    if way in ("shared", "aggregator"):
        parts = case.workers if way == "aggregator" else 1
        wire_bytes = parts * limits.ina_wire_bytes(case.elems, case.values)
        found = min(found, tensor_gb / limits.link_s(wire_bytes, case.aggregator_bit_s))
    return found


def ratios(rows: Sequence[SharingRow], link: str) -> list[Ratio]:
    """Each way's goodput over that of static parts, and over the limit."""
    found = []
    for row in rows:
        name = f"{row.jobs} jobs {link} {row.way}"
        if row.gain is not None and row.way != "static":
            found.append(Ratio(f"{name}/static", row.gain))
        found.append(Ratio(f"{name}/limit", row.limit_share))
    return found


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Goodput, and what each way brings against static parts, by the number of jobs."""

    def goodput(row: dict[str, Any]) -> Point:
        return Point(row["jobs"], row["goodput_gb_s"], row["low_gb_s"], row["high_gb_s"])

    def gain(row: dict[str, Any]) -> Point:
        return Point(row["jobs"], row["gain"], row["gain_low"], row["gain_high"])

    jobs = Axis("jobs", "workers")
    found = [
        Panel(
            "Goodput of all jobs",
            jobs,
            Axis("GB/s", "GB/s"),
            curves(rows, lambda row: row["way"], lambda row: "", goodput),
        )
    ]
    gained = [row for row in rows if row["gain"] is not None and row["way"] != "static"]
    if gained:
        found.append(
            Panel(
                "Gain",
                jobs,
                Axis("goodput / static parts'", "ratio"),
                curves(gained, lambda row: row["way"], lambda row: "", gain),
                level=(1.0, "as static parts"),
            )
        )
    return found
