"""What limits a job, and what ina can change about it: a model of one training step.

A step computes forward and backward. Backward (two thirds of it) overlaps with the reduction of
the buckets that are ready; the last bucket has nothing left to hide behind. A reduction takes as
long as the slower of wire and CPU, and a latency for each bucket:

- ina sends the tensor once, with its headers: B / L;
- Gloo's ring sends 2 (n - 1) / n of it, with TCP's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from ina.bench import limits
from ina.bench.gradients import ITEM_BYTES
from ina.bench.report import Report
from ina.bench.testbed import LOOPBACK
from ina.errors import InvalidInputError
from ina.p4.builds import largest_build
from ina.protocol.coding import MOST_WORKERS
from ina.protocol.spec import VALUE_BYTES

Bound = Literal["compute", "network", "latency", "cpu"]

BACKWARD_FRACTION = 2 / 3
"""Of a step's computing: backward makes two products where forward makes one."""
AS_GOOD_AS_BFLOAT16 = 8
"""Workers up to which sums in 16 bits are as near as a ring's in bfloat16 (bench rounding)."""
NEGLIGIBLE = 0.05
"""A share of the step that is not worth a switch."""


@dataclass(frozen=True)
class KnownJob:
    """What was measured of a job, or is known of it."""

    workers: int
    compute_s: float
    """Of a step, without communication."""
    gradient_bytes: int
    """Of a step, in their own type."""
    buckets: int
    """All-reduces of a step."""
    link_bit_s: float
    """Of each worker, each way."""
    mtu_bytes: int
    """Of the path to the switch: IP packets that pass whole."""
    dtype: str = "float32"
    """Of the gradients: of these, a value takes an int32 word of a packet, whatever its size."""
    union: float | None = None
    """Of their blocks, the share that some rank has values in. None: not known."""

    @property
    def elems(self) -> int:
        """Gradients of a step."""
        return self.gradient_bytes // ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Costs:
    """What each of the two needs on this machine, for one all-reduce."""

    ina_latency_s: float
    """Of a small tensor."""
    gloo_latency_s: float
    ina_cpu_s_per_gb: float
    """CPU seconds of a worker for 1e9 bytes of tensor."""
    gloo_cpu_s_per_gb: float


@dataclass(frozen=True)
class Advice:
    """What limits the job."""

    bound: Bound
    """What takes the time that the reduction adds; compute: it adds next to none."""
    gain: float
    """Expected: Gloo's step / ina's."""
    gain_at_most: float | None
    """Of a network-bound job: 2 (n - 1) / n, by bytes on the wire. None: something else decides."""
    ina_step_s: float
    gloo_step_s: float
    ina_exposed_s: float
    """What ina's reduction adds to the computing."""
    gloo_exposed_s: float
    wire_s: float
    """Of ina's reduction alone."""
    cpu_s: float
    """Of a worker, for ina's reduction."""
    latency_s: float
    """Of all buckets together, ina's."""
    narrow_gains: dict[str, float]
    """Expected where floats travel in fewer bits, by wire: those with room for so many workers."""
    sparse_gain: float | None
    """Expected where only blocks go that some rank has values in; None: those are not known."""
    values: int
    """A packet: the largest build that the path's MTU lets pass."""
    text: str
    """One sentence."""


def costs_of(report: Report) -> Costs:
    """From a report of ``bench allreduce``: latency of its smallest tensor, CPU of its largest.

    Raises :class:`InvalidInputError`: it has no such rows.
    """
    found: dict[str, list[dict[str, Any]]] = {"ina": [], "gloo": []}
    if report.bench == "allreduce":
        for row in report.rows:
            if row["backend"] in found:
                found[row["backend"]].append(row)
    if not all(found.values()):
        raise InvalidInputError(f"a report of bench {report.bench}: want one of bench allreduce")

    def latency_s(backend: str) -> float:
        return float(min(found[backend], key=lambda row: row["size_bytes"])["time_s"])

    def cpu_s_per_gb(backend: str) -> float:
        largest = max(found[backend], key=lambda row: row["size_bytes"])
        return float(largest["cpu_s_per_gb"] or 0.0)

    return Costs(
        ina_latency_s=latency_s("ina"),
        gloo_latency_s=latency_s("gloo"),
        ina_cpu_s_per_gb=cpu_s_per_gb("ina"),
        gloo_cpu_s_per_gb=cpu_s_per_gb("gloo"),
    )


def loopback_bit_s(report: Report, workers: int) -> float:
    """What one of so many workers on one host has of its loopback, each way, as a link's rate.

    Raises :class:`InvalidInputError`: the report has no limit of loopback.
    """
    link = report.settings.get("link")
    if link != LOOPBACK:
        raise InvalidInputError(f"costs over {link}, not {LOOPBACK}: give --link a rate")
    for row in sorted(report.rows, key=lambda row: -int(row["size_bytes"])):
        if row["backend"] == "ina" and row["limit_s"]:
            crossings = limits.crossings(row["workers"], row["multicast"])
            loopback_bit_s = crossings * row["size_bytes"] * 8 / row["limit_s"]
            return float(loopback_bit_s / (2 * workers))
    raise InvalidInputError("the report has no limit of loopback: give --link a rate")


def advise(job: KnownJob, costs: Costs) -> Advice:
    """Raises :class:`InvalidInputError`: no job is like this, or no build fits the MTU."""
    is_real = job.workers >= 2 and job.buckets >= 1 and job.compute_s >= 0
    if job.dtype not in ITEM_BYTES or not is_real or job.elems < 1:
        raise InvalidInputError(f"no job has {job}")
    values = largest_build(job.mtu_bytes)
    gb = job.gradient_bytes / 1e9
    ring_s = limits.link_s(limits.ring_wire_bytes(job.gradient_bytes, job.workers), job.link_bit_s)
    gloo_exposed = _exposed_s(
        job, max(ring_s, costs.gloo_cpu_s_per_gb * gb) + costs.gloo_latency_s * job.buckets
    )
    gloo_step = job.compute_s + gloo_exposed
    cpu_s = costs.ina_cpu_s_per_gb * job.elems * VALUE_BYTES / 1e9
    latency_s = costs.ina_latency_s * job.buckets

    def wire_s_of(words: float) -> float:
        return limits.link_s(limits.ina_wire_bytes(math.ceil(words), values), job.link_bit_s)

    def exposed_s(words: float, round_trips: int = 1) -> float:
        return _exposed_s(job, max(wire_s_of(words), cpu_s) + latency_s * round_trips)

    def gain(words: float, round_trips: int = 1) -> float:
        return gloo_step / (job.compute_s + exposed_s(words, round_trips))

    wire_s, ina_exposed = wire_s_of(job.elems), exposed_s(job.elems)
    bound = _bound(gloo_exposed / gloo_step, wire_s, cpu_s, latency_s)
    narrow_gains = {
        str(bits): gain(job.elems * bits / 32)
        for bits in (16, 8)
        if job.workers <= MOST_WORKERS[bits]
    }
    sparse_words = None if job.union is None else _sparse_words(job, job.union, values)
    sparse_gain = None if sparse_words is None else gain(sparse_words, 2)
    text = _text(bound, job, gain(job.elems), gloo_exposed / gloo_step)
    if bound == "network":
        text += _narrow_text(job, narrow_gains) + _sparse_text(job, sparse_gain, gain(job.elems))
    return Advice(
        bound=bound,
        gain=gain(job.elems),
        gain_at_most=_most(job) if bound == "network" else None,
        ina_step_s=job.compute_s + ina_exposed,
        gloo_step_s=gloo_step,
        ina_exposed_s=ina_exposed,
        gloo_exposed_s=gloo_exposed,
        wire_s=wire_s,
        cpu_s=cpu_s,
        latency_s=latency_s,
        narrow_gains=narrow_gains,
        sparse_gain=sparse_gain,
        values=values,
        text=text,
    )


def _sparse_words(job: KnownJob, union: float, values: int) -> float:
    """Of the blocks in the union, and of a counter for each block, which says that they are."""
    counters_a_word = 32 // job.workers.bit_length()
    return job.elems * union + job.elems / values / counters_a_word


def _most(job: KnownJob) -> float:
    """What a ring sends of these gradients, of what ina does: a word for each."""
    return 2 * (job.workers - 1) / job.workers * ITEM_BYTES[job.dtype] / VALUE_BYTES


def _exposed_s(job: KnownJob, reduce_s: float) -> float:
    """What of a reduction backward does not hide."""
    last_s = reduce_s / job.buckets
    hidden_s = job.compute_s * BACKWARD_FRACTION * (1 - 1 / job.buckets)
    return max(last_s, reduce_s - hidden_s)


def _bound(exposed_share: float, wire_s: float, cpu_s: float, latency_s: float) -> Bound:
    if exposed_share < NEGLIGIBLE:
        return "compute"
    if latency_s > max(wire_s, cpu_s):
        return "latency"
    return "cpu" if cpu_s > wire_s else "network"


def _narrow_text(job: KnownJob, gains: dict[str, float]) -> str:
    """What else there is: fewer bytes, where training bears them."""
    ways = {"16": "INA_WIRE=16", "8": "ina.torch.lowbit_hook, 8 bits"}
    said = [f"{gain:.2f} with {ways[wire]}" for wire, gain in gains.items()]
    if not said:
        return ""
    few = job.workers <= AS_GOOD_AS_BFLOAT16 and "16" in gains
    if few and ITEM_BYTES[job.dtype] == 2:
        said[0] += f" (as good as a ring's sums of {job.dtype}, in as many bytes)"
    return f"; in fewer bytes, where training bears them, {', '.join(said)}"


def _sparse_text(job: KnownJob, gain: float | None, dense_gain: float) -> str:
    if gain is None:
        return ""
    blocks = f"some rank has values in {100 * (job.union or 0):.1f} % of the blocks"
    if gain <= dense_gain:
        return f"; {blocks}: sparse sums gain nothing"
    return f"; {blocks}: {gain:.2f} with INA_SPARSE=auto"


def _most_of(job: KnownJob) -> str:
    return "2 (n - 1) / n" if ITEM_BYTES[job.dtype] == VALUE_BYTES else "(n - 1) / n"


def _text(bound: Bound, job: KnownJob, gain: float, exposed_share: float) -> str:
    match bound:
        case "compute":
            return (
                f"compute-bound: with Gloo, {100 * exposed_share:.1f} % of a step waits for"
                " gradients; in-network aggregation cannot help this job"
            )
        case "network":
            return (
                f"network-bound: the links take the time; expected gain over Gloo {gain:.2f},"
                f" at most {_most(job):.2f} = {_most_of(job)} for what is on the wire"
            )
        case "latency":
            return (
                f"latency-bound: {job.buckets} small all-reduces a step wait for round trips;"
                f" expected gain over Gloo {gain:.2f}; fewer, larger buckets help both"
            )
        case "cpu":
            return (
                "CPU-bound: the workers' CPUs take longer than the links; expected gain over Gloo"
                f" {gain:.2f}; a faster network changes nothing, more or faster cores do"
            )
