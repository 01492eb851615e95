"""What the windows of running jobs shall be, told to their workers when it changes.

It changes when jobs come, go or get another mapping, when the configuration does, and when round
trips turn out to be others. Whatever has changed by the time that this looks is told at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ina.congestion import Congestion
from ina.controller.config import Config
from ina.controller.config.rules import JobRule
from ina.controller.job import Job, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.events import job_event
from ina.controller.jobs.rounds import Rounds
from ina.controller.windows.caps import Cap, Caps, Use, caps_for
from ina.controller.windows.limited_by import Limit, limited_by
from ina.controller.windows.seen import Between, Seen
from ina.controller.windows.uses import (
    SharedPool,
    Thing,
    link_rates,
    link_uses,
    packet_bits,
    slot_uses,
)
from ina.fabric.graph import Fabric
from ina.rpc import controller_pb2 as pb2


class Rules:
    """Of a checked configuration. A job's own rule comes first, then its tenant's, then all's."""

    def __init__(self, config: Config) -> None:
        self._all = Congestion.from_table(config.congestion)
        self._tenants = config.tenants
        self._rules = config.job_rules

    def congestion(self, job: Job) -> Congestion:
        """The algorithm of its workers, but for those that choose one themselves."""
        rule, tenant = self._rule(job), self._tenants.get(job.tenant)
        for of in (rule, tenant):
            if of is not None and of.congestion is not None:
                return Congestion.from_table(of.congestion)
        return self._all

    def weight(self, job: Job) -> float:
        """Of its share of what it uses together with others."""
        rule, tenant = self._rule(job), self._tenants.get(job.tenant)
        if rule is not None and rule.weight is not None:
            return rule.weight
        return 1.0 if tenant is None else tenant.weight

    def _rule(self, job: Job) -> JobRule | None:
        return next((it for it in self._rules if fnmatchcase(job.name, it.name)), None)


_log = logging.getLogger(__name__)

WORTH_TELLING = 1 / 8
"""A cap that differs by less, only because round trips do, is left as it was told."""
GATHER_S = 0.1
"""Heartbeats come one after the other: what round trips they tell is looked at together."""
SAME_SHARE = 1 / 100
"""Shares that differ by less are the same."""
_KICKS = frozenset(
    (pb2.JOB_RUNNING, pb2.MEMBER_LEFT, pb2.JOB_ENDED, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF)
)


@dataclass
class _OfJob:
    """What was told to a job's workers, and what they have told."""

    number: int = 0
    """Of the last word; 0: none."""
    congestion: Congestion | None = None
    cap: Cap = field(default_factory=Cap)
    now: Cap = field(default_factory=Cap)
    """As it was computed last; where that is hardly another it was not told."""
    ranks: dict[int, Seen] = field(default_factory=dict)


class JobWindows:
    """Of all jobs, in one term of a controller, in its event loop."""

    def __init__(
        self,
        coordinator: Coordinator,
        fabric: Fabric,
        config: Config,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._coordinator = coordinator
        self._fabric = fabric
        self._clock = clock
        self._rates = link_rates(fabric)
        self._jobs: weakref.WeakKeyDictionary[Job, _OfJob] = weakref.WeakKeyDictionary()
        self._numbers = 0
        self._gathering: asyncio.TimerHandle | None = None
        self._rounds = Rounds(
            *("the windows of jobs", self.look, None),
            gather_s=0.0,
            events=coordinator.events,
            hear=lambda event: event is None or event.kind in _KICKS,
        )
        self._rules = Rules(config)
        self._caps: Caps = caps_for(config.windows)

    def reconfigure(self, config: Config) -> None:
        """From now on algorithms, weights and caps are those of ``config``."""
        self._rules, self._caps = Rules(config), caps_for(config.windows)
        self._rounds.kick()

    def start(self) -> None:
        """From now on changes are told."""
        self._rounds.start(at_once=True)

    async def close(self) -> None:
        """Nothing more is told."""
        if self._gathering is not None:
            self._gathering.cancel()
        await self._rounds.close()

    def congestion(self, job: Job) -> pb2.Congestion:
        """For a ticket."""
        return _message(self._rules.congestion(job))

    def hear(self, job: Job, rank: int, progress: pb2.Progress) -> None:
        """A worker says how it gets on."""
        if not progress.HasField("windows"):
            return
        epoch = job.mapping.epoch
        of = self._of(job)
        seen = of.ranks.get(rank)
        if seen is None or seen.mapping_epoch != epoch:
            seen = of.ranks[rank] = Seen(epoch)
        before_s = seen.shortest_s
        seen.hear(progress, self._clock())
        if seen.shortest_s != before_s and self._caps.goes_by_uses and self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_later(GATHER_S, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        self._rounds.kick()

    def event(self, job: Job) -> pb2.JobEvent | None:
        """For who begins to listen: what the job's windows shall be; None: it does not run."""
        if job.state is not JobState.RUNNING:
            return None
        of = self._of(job)
        if of.congestion is None:
            of.congestion = self._rules.congestion(job)
            of.number = self._next_number()
        return self._event_of(job, of)

    def link_bits_per_s(self) -> Mapping[Thing, float]:
        """What jobs' packets take of each direction of a link, by their workers' last reports."""
        found: Counter[Thing] = Counter()
        for job in self._coordinator.jobs():
            bits_per_s = self._bits_per_s(job) if job.state is JobState.RUNNING else 0.0
            if bits_per_s:
                for thing, times in link_uses(self._fabric, job.mapping, job.members).items():
                    found[thing] += times * bits_per_s  # type: ignore[assignment]
        return found

    def _bits_per_s(self, job: Job) -> float:
        """Of a rank's packets, which are as many as any other's; 0: none came, or none is known."""
        of, bits = self._of(job), self._packet_bits(job)
        between = [it.between(rank, bits) for rank, it in of.ranks.items() if rank in job.members]
        rates = [it.results * bits / it.elapsed_s for it in between if it and it.elapsed_s > 0]
        return sum(rates) / len(rates) if rates else 0.0

    def show(self, job: Job) -> pb2.JobWindows | None:
        """For people; None: it does not run, or has never."""
        of = self._jobs.get(job)
        if of is None or of.congestion is None:
            return None
        limit, ranks = self._limit(job, of)
        shown = pb2.JobWindows(
            wanted=self._wanted(of),
            weight=self._rules.weight(job),
            share_bits_per_s=of.now.share_bits_per_s,
            bottleneck="" if of.now.bottleneck is None else str(of.now.bottleneck),
            round_trip_s=self._round_trip_s(job, of),
            limited_by=limit.what,
            why=limit.why,
        )
        shown.ranks.extend(ranks)
        return shown

    def look(self) -> None:
        """Tells each job's workers what has changed for them since they were told last."""
        running = [it for it in self._coordinator.jobs() if it.state is JobState.RUNNING]
        caps: Mapping[str, Cap] = {}
        if self._caps.goes_by_uses:
            caps = self._caps.caps([self._use(job) for job in running], self._capacities())
        for job in running:
            of, cap = self._of(job), caps.get(job.name, Cap())
            of.now = cap
            congestion, is_new = self._rules.congestion(job), of.congestion is None
            if of.congestion == congestion and not _differs(of.cap, cap):
                continue
            of.congestion, of.cap, of.number = congestion, cap, self._next_number()
            if not is_new:  # else nobody listens yet, and whoever begins to hears it
                self._coordinator.events.publish(self._event_of(job, of))

    def _of(self, job: Job) -> _OfJob:
        return self._jobs.setdefault(job, _OfJob())

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _use(self, job: Job) -> Use:
        mapping, bits = job.mapping, self._packet_bits(job)
        round_trip_s = self._round_trip_s(job, self._of(job))
        return Use(
            job.name,
            self._rules.weight(job),
            link_uses(self._fabric, mapping, job.members),
            slot_uses(mapping, job.name, bits, round_trip_s) if round_trip_s else {},
            job.lanes,
            bits,
            round_trip_s,
        )

    def _capacities(self) -> Mapping[Thing, float]:
        shared: dict[Thing, float] = {
            SharedPool(name): float(capacity.shared.total)
            for name, capacity in self._coordinator.registry.switches.items()
            if capacity.shared is not None
        }
        return {**self._rates, **shared}

    def _packet_bits(self, job: Job) -> int:
        return packet_bits(self._coordinator.registry.switches[job.switch].values)

    def _round_trip_s(self, job: Job, of: _OfJob) -> float:
        """The longest of its ranks' shortest; 0: one of them has not told any."""
        epoch = job.mapping.epoch
        told = [of.ranks.get(rank) for rank in job.members]
        known = [it.shortest_s for it in told if it is not None and it.mapping_epoch == epoch]
        return max(known) if known and len(known) == len(told) and all(known) else 0.0

    def _limit(self, job: Job, of: _OfJob) -> tuple[Limit, list[pb2.RankWindows]]:
        bits = self._packet_bits(job)
        seen = {rank: of.ranks[rank] for rank in sorted(job.members) if rank in of.ranks}
        between = {rank: it.between(rank, bits) for rank, it in seen.items()}
        ranks = list(_rank_windows(seen, between))
        return limited_by([it for it in between.values() if it is not None], of.now), ranks

    def _event_of(self, job: Job, of: _OfJob) -> pb2.JobEvent:
        cap = f", at most {of.cap.most_packets} packets" if of.cap.most_packets else ""
        event = job_event(pb2.JOB_WINDOWS, job, reason=f"{of.congestion}{cap}")
        event.windows.CopyFrom(self._wanted(of))
        return event

    @staticmethod
    def _wanted(of: _OfJob) -> pb2.Windows:
        assert of.congestion is not None
        return pb2.Windows(
            number=of.number,
            congestion=_message(of.congestion),
            most_packets=of.cap.most_packets,
        )


def _rank_windows(
    seen: Mapping[int, Seen], between: Mapping[int, Between | None]
) -> Iterator[pb2.RankWindows]:
    for rank, it in seen.items():
        shown = pb2.RankWindows(
            rank=rank, least_packets=it.least_packets, most_packets=it.most_packets
        )
        found = between[rank]
        if found is not None:
            shown.goodput_bits_per_s = found.goodput_bits_per_s
            shown.last_share = found.last_share
            shown.busy_share = found.busy_share or 0.0
        yield shown


def _differs(told: Cap, now: Cap) -> bool:
    """Whether it is worth telling: another share, or round trips that are quite others."""
    if bool(told.most_packets) != bool(now.most_packets):
        return True
    if not now.most_packets:
        return False
    if not math.isclose(told.share_bits_per_s, now.share_bits_per_s, rel_tol=SAME_SHARE):
        return told.most_packets != now.most_packets
    return abs(now.most_packets - told.most_packets) > WORTH_TELLING * told.most_packets


def _message(congestion: Congestion) -> pb2.Congestion:
    return pb2.Congestion(algorithm=congestion.algorithm, options=congestion.options)
