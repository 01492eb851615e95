"""What sharding, a cache and hot rows would bring to a job that asks for what a trace has.

The trace is replayed: which rows lie where, how they are asked for, which are kept and which are
hot, is decided by what decides it in a service. Its first half warms caches and is counted for hot
rows, and its second half is measured. Bytes are those of vectors that come to a host, as float32
and without headers; for comparison, an all_to_all of one sum for each sample and table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ina.embed.asked import Step, are_among, step_of, tables_of
from ina.embed.caches import Caches, MostAsked
from ina.embed.errors import TraceError
from ina.embed.hot import MOST_HOT_BYTES, Asks, Rows, candidates, counts_of, hottest
from ina.embed.memory import needed_bytes
from ina.embed.rules import RULES
from ina.embed.sharding import VALUE_BYTES, Spread, how, place
from ina.embed.trace import Trace
from ina.extension.embed import Optimizer, TableSpec

LEAST_STEPS = 2
Told = Callable[[int, int], None]
"""Of progress: steps that are done, and all of them."""


@dataclass(frozen=True)
class PlanOrder:
    """For what job."""

    hosts: int
    samples: int
    """Of a host, in a step."""
    dim: int
    shard: Spread
    cache_shares: Sequence[float]
    """Of the rows, that a host has room for in its cache."""
    optimizer: str
    """By its name: see RULES."""
    most_hot_bytes: int = MOST_HOT_BYTES


@dataclass(frozen=True)
class TablePlan:
    """A table."""

    name: str
    rows: int
    lies: str
    bag: float
    """Rows of a sample, in the mean."""
    by_row: float
    """Share of the batches whose rows are asked for each once; of the others by bag."""
    vectors: float
    """That come to a host in a step without a cache, in the mean, of inference."""


@dataclass(frozen=True)
class CachePlan:
    """Inference with a cache."""

    cache: float
    """Share of the rows that it has room for."""
    cache_bytes: int
    """As ``EmbeddingOptions(cache_bytes=)``, on each host."""
    hits: float | None
    """Of the rows of other hosts that are looked for, the share that it has. None: no cache."""
    received_bytes: float
    """By a host, in a step, in the mean."""
    share: float
    """Of what all_to_all brings."""
    share_counted: float
    """If it had instead, from the first, what the trace's first half asks for most of each table:
    the least that another choice would bring."""


@dataclass(frozen=True)
class TrainingPlan:
    """Forward and backward; hot rows by the rule."""

    hot_rows: int
    hot_bytes: int
    """Of replicas on each host, and of each step's all-reduce."""
    hits: float
    """Of the rows that are asked for by row, the share that is hot."""
    received_bytes: float
    share: float
    share_without_hot: float


@dataclass(frozen=True)
class TracePlan:
    """What is found."""

    steps: int
    """Of the trace: the second half of them is measured."""
    all_to_all_bytes: float
    """That come to a host in a step of inference; training has twice as many."""
    tables: Sequence[TablePlan]
    inference: Sequence[CachePlan]
    training: TrainingPlan
    rows_bytes: int
    """On the host that has most: rows, and what the optimiser keeps."""


def plan(trace: Trace, order: PlanOrder, told: Told = lambda done, total: None) -> TracePlan:
    """Replay a trace. Raises TraceError: it is too short; TableError."""
    steps = trace.samples // (order.hosts * order.samples)
    if steps < LEAST_STEPS:
        raise TraceError(
            f"the trace has {trace.samples} samples: {LEAST_STEPS} steps of {order.hosts} hosts,"
            f" {order.samples} each, need {LEAST_STEPS * order.hosts * order.samples}"
        )
    specs = place(tables_of(trace.tables, order.dim, order.shard), order.hosts)
    caches = [Caches(share, specs, order.hosts) for share in order.cache_shares]
    counted = Counted(len(specs), order.hosts)
    measured = []
    for number in range(steps):
        first = number * order.hosts * order.samples
        step = step_of(trace.tables, specs, order.hosts, first, order.samples)
        is_measured = number >= steps // 2
        for cache in caches:
            cache.replay(step, is_measured)
        if is_measured:
            measured.append(step)
        else:
            counted.add(step)
        told(number + 1, steps)
    return _plan_of(trace, order, specs, caches, counted, measured)


def _plan_of(
    trace: Trace,
    order: PlanOrder,
    specs: Sequence[TableSpec],
    caches: Sequence[Caches],
    counted: Counted,
    measured: Sequence[Step],
) -> TracePlan:
    batches = len(measured) * order.hosts
    steps = trace.samples // (order.hosts * order.samples)
    sums = order.samples * len(specs) * (order.hosts - 1) / order.hosts
    scale = _Scale(batches, order.dim * VALUE_BYTES, sums * order.dim * VALUE_BYTES)
    optimizer = Optimizer(rule=RULES[order.optimizer])
    most = MostAsked(trace, steps // 2 * order.hosts * order.samples)
    return TracePlan(
        steps=steps,
        all_to_all_bytes=scale.all_to_all_bytes,
        tables=[
            TablePlan(
                name=table.name,
                rows=table.rows,
                lies=how(spec),
                bag=table.bags.rows.size / table.bags.count,
                by_row=sum(one.is_by_row for step in measured for one in step[at]) / batches,
                vectors=sum(one.vectors() for step in measured for one in step[at]) / batches,
            )
            for at, (table, spec) in enumerate(zip(trace.tables, specs, strict=True))
        ],
        inference=[
            CachePlan(
                cache=one.share,
                cache_bytes=one.bytes,
                hits=one.hits,
                received_bytes=scale.bytes(one.vectors),
                share=scale.share(one.vectors),
                share_counted=scale.share(most.vectors(one.share, measured)),
            )
            for one in caches
        ],
        training=_training(measured, counted.hottest(order, steps // 2), scale),
        rows_bytes=max(
            needed_bytes(specs, order.hosts, host, optimizer) for host in range(order.hosts)
        ),
    )


@dataclass(frozen=True)
class _Scale:
    """From vectors that came to all hosts in all measured steps, to one host's bytes a step."""

    batches: int
    vector_bytes: int
    all_to_all_bytes: float

    def bytes(self, vectors: float) -> float:
        return vectors / self.batches * self.vector_bytes

    def share(self, vectors: float) -> float:
        return self.bytes(vectors) / self.all_to_all_bytes if self.all_to_all_bytes else 0.0


class Counted:
    """What each host asks for, as services count it."""

    def __init__(self, tables: int, hosts: int) -> None:
        """Nothing yet."""
        self._asks = [[Asks() for _ in range(hosts)] for _ in range(tables)]

    def add(self, step: Step) -> None:
        """Of a step."""
        for asks, of_hosts in zip(self._asks, step, strict=True):
            for asked in of_hosts:
                if asked.is_by_row:
                    asks[asked.host].add(asked.rows)

    def hottest(self, order: PlanOrder, steps: int) -> list[Rows]:
        """Of each table the rows that are hot after so many steps; forgets them."""
        totals = []
        for asks in self._asks:
            counts = [one.counts() for one in asks]
            rows = np.unique(
                np.concatenate([candidates(one, order.hosts, steps) for one in counts])
            )
            totals.append((rows, np.sum([counts_of(one, rows) for one in counts], axis=0)))
        return hottest(
            totals,
            [order.dim * VALUE_BYTES] * len(totals),
            hosts=order.hosts,
            steps=steps,
            most_bytes=order.most_hot_bytes,
        )


def _training(measured: Sequence[Step], hot: Sequence[Rows], scale: _Scale) -> TrainingPlan:
    """A vector that comes goes back as a gradient to its owner; those of hot rows are summed."""
    cold = without = sought = hits = 0
    for step in measured:
        for rows, of_hosts in zip(hot, step, strict=True):
            for asked in of_hosts:
                is_hot = are_among(asked.rows, rows)
                cold += asked.vectors(is_hot)
                without += asked.vectors()
                if asked.is_by_row:
                    sought += asked.rows.size
                    hits += int(np.count_nonzero(is_hot))
    hot_rows = sum(rows.size for rows in hot)
    moved = 2 * cold + hot_rows * scale.batches
    return TrainingPlan(
        hot_rows=hot_rows,
        hot_bytes=hot_rows * scale.vector_bytes,
        hits=hits / sought if sought else 0.0,
        received_bytes=scale.bytes(moved),
        share=scale.share(moved) / 2,  # all_to_all goes both ways
        share_without_hot=scale.share(without),
    )
