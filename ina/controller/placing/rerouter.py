"""Moves running jobs' trees off what is down, and to where steps are faster.

A move is a change of the job's mapping (docs/resize.md): the job goes on all the time. It is begun
where a tree's links or switches are down, or where moving a few trees makes the slowest resource of
the fabric faster by a twentieth; no more than ``routing.moves`` of those at a time.

A job of mode ``shared`` is moved off what is down alone, to another root and, where the way to its
aggregators is down, below others: how fast its steps are depends on aggregators' cables, too, of
which plans know nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from ina import modes
from ina.controller.errors import (
    JobConflictError,
    JobPipesError,
    NoRoomError,
    RoutingError,
    StandbyError,
    UnknownJobError,
)
from ina.controller.job import Job, JobState
from ina.controller.jobs import remapping
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.outages import StoredOutages
from ina.controller.jobs.rounds import Rounds
from ina.controller.placing.router import Router, View
from ina.controller.routing.demand import Demand
from ina.controller.routing.loads import Loads
from ina.controller.routing.network import Network, with_down
from ina.controller.routing.plan import Stripe, merged
from ina.controller.routing.planner import Planner
from ina.controller.routing.policies.ina import Ina
from ina.controller.slots.decisions import Decisions
from ina.fabric.outages import Down
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest

_log = logging.getLogger(__name__)

T = TypeVar("T")
Compute = Callable[[Callable[[], T]], Awaitable[T]]
"""Runs what takes long beside the event loop."""

PERIOD_S = 10.0
"""Also when nothing happens: what is known of jobs' steps changes."""
WORTH = 0.05
"""So much faster must the slowest resource be for trees that work to be moved."""
PAUSE_S = 30.0
"""A job whose trees could not be moved is left alone for so long."""

_NOT_NOW = (
    *(JobConflictError, JobRequestError, NoRoomError, RoutingError, StandbyError, SwitchError),
    *(JobPipesError, UnknownJobError),
)
"""A job ends, changes already, or switches have no room or no trees."""
_KICKS = frozenset(
    (pb2.JOB_RUNNING, pb2.JOB_ENDED, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF, pb2.FABRIC_CHANGED)
)


@dataclass(frozen=True)
class _Wanted:
    """What planning has found."""

    stripes: Mapping[str, tuple[Stripe, ...]]
    """By job, of those whose trees change."""
    broken: frozenset[str]
    """Of these, whose trees go over something that is down."""
    lost: tuple[str, ...]
    """Jobs that have no way left."""
    before_s: float
    after_s: float


class Rerouter:
    """In the coordinator's event loop, as long as its task runs."""

    def __init__(
        self,
        router: Router,
        outages: StoredOutages,
        coordinator: Coordinator,
        decisions: Decisions,
        clock: Callable[[], float],
        compute: Compute[_Wanted],
    ) -> None:
        self._router = router
        self._outages = outages
        self._coordinator = coordinator
        self._decisions = decisions
        self._clock = clock
        self._compute = compute
        self._left_alone: dict[str, float] = {}
        self._told_lost: set[str] = set()
        self._rounds = Rounds(
            *("routing", self.reroute, PERIOD_S), events=coordinator.events, hear=self._hear
        )

    def start(self) -> None:
        """From now on trees are moved."""
        self._rounds.start()

    async def close(self) -> None:
        """No more moves; those under way go on."""
        await self._rounds.close()

    def kick(self) -> None:
        """Something has changed: look again soon."""
        self._rounds.kick()

    @property
    def down(self) -> Down:
        """What running jobs are moved off."""
        return self._outages.away

    async def reroute(self) -> None:
        """Plans for the jobs that run, and begins the moves."""
        jobs = self._movable()
        if not jobs:
            return
        view = self._router.view(Down())
        stripes = {job.name: merged(view.stripes(job.name)) for job in jobs}
        current = {job.name: stripes[job.name] for job in jobs if modes.of(job.mode).is_striped}
        network = _with_own_slots(view, current)
        broken_network = with_down(network, self.down)
        whole = [job.name for job in jobs if not modes.of(job.mode).is_striped]
        off = {
            name
            for name in whole
            if not _is_whole(broken_network, view.demands[name], stripes[name])
        }
        others = view.loads(but={*current, *off})
        arriving = [view.demands[name] for name in sorted(off)]
        moves = self._router.moves
        work = partial(
            _plan, view, network, current, others, broken_network, moves, arriving=arriving
        )
        wanted = await self._compute(work)
        self._tell_lost(wanted.lost)
        for name in wanted.stripes:
            await self._move(view, broken_network, name, wanted)
        for name in whole:
            if name not in off:
                await self._move_aggregators(name)

    def _movable(self) -> list[Job]:
        """Jobs that may be moved: of policy ``ina``, or over something that is down."""
        now_s, down = self._clock(), self.down
        return [
            job
            for job in self._coordinator.registry
            if job.state is JobState.RUNNING
            and job.change is None
            and not job.missing()
            and job.placed is not None
            and self._left_alone.get(job.name, now_s) <= now_s
            and (down or self._is_planned(job))
        ]

    def _is_planned(self, job: Job) -> bool:
        is_of_ina = self._router.policy_of(job.name) == Ina.name
        return is_of_ina and modes.of(job.mode).is_striped

    async def _move(self, view: View, network: Network, name: str, wanted: _Wanted) -> None:
        """``network``: with what is down."""
        if name in wanted.broken:
            why = f"its trees go over what is down: {self._down_text()}"
        else:
            faster = f"{wanted.before_s * 1e3:.3g} -> {wanted.after_s * 1e3:.3g} ms"
            why = f"the slowest link's part of all jobs' steps: {faster}"
        stripes = wanted.stripes[name]
        await self._begin(name, why, lambda _: self._router.realised(view, name, stripes, network))

    async def _move_aggregators(self, name: str) -> None:
        """Over the same trees, below those to which a way is up."""
        why = f"the way to its aggregator goes over what is down: {self._down_text()}"
        site = self._coordinator.registry.site
        await self._begin(name, why, lambda job: site.bare(job, job.newest_mapping.forest))

    async def _begin(self, name: str, why: str, forest_of: Callable[[Job], Forest]) -> None:
        """A change to that forest, unless it is the one that the job has."""
        registry = self._coordinator.registry
        try:
            job = registry.get(name)
            forest = forest_of(job)
            if remapping.forest_of(registry, job, forest, job.mode) == job.newest_mapping.forest:
                return
            await self._change(job, forest, f"placement {self._router.policy_of(name)}: {why}")
        except _NOT_NOW as error:
            self._left_alone[name] = self._clock() + PAUSE_S
            said = f"{why}; {error}; left alone for {PAUSE_S:g} s"
            self._decisions.add(name, "fail", said)
            return
        self._decisions.add(name, "move", why, before=job.slots, slots=job.slots)

    async def _change(self, job: Job, forest: Forest, why: str) -> None:
        """With as many slots as it has, or where there is no room for so many more, with fewer."""
        slots = job.slots
        while True:
            try:
                await self._coordinator.changes.change(job, slots=slots, forest=forest, why=why)
            except NoRoomError:
                slots //= 2
                if slots < 2 * forest.parts:
                    raise
            else:
                return

    def _down_text(self) -> str:
        down = self.down
        return ", ".join([*sorted(down.switches), *("-".join(sorted(it)) for it in down.links)])

    def _tell_lost(self, lost: tuple[str, ...]) -> None:
        for name in set(lost) - self._told_lost:
            _log.warning("job %r: no other way leads around %s", name, self._down_text())
        self._told_lost = set(lost)

    def _hear(self, event: pb2.JobEvent | None) -> bool:
        if event is None:
            return True
        if event.kind == pb2.SWITCH_UNREACHABLE and event.switch in self._coordinator.switches:
            self._outages.unreached.add(event.switch)
            return True
        if event.kind == pb2.SWITCH_BACK:
            self._outages.unreached.discard(event.switch)
            return True
        if event.kind in (pb2.JOB_ENDED, pb2.JOB_REMAPPED):
            self._left_alone.pop(event.name, None)
        elif event.kind == pb2.JOB_REMAP_OFF:
            self._left_alone[event.name] = self._clock() + PAUSE_S
        return event.kind in _KICKS


def _with_own_slots(view: View, current: Mapping[str, tuple[Stripe, ...]]) -> Network:
    """What is free, and what these jobs have: they give it back as they move."""
    slots = view.network.slots.copy()
    for name, stripes in current.items():
        slots += view.loads_of(name, stripes).slots
    return view.network.with_slots(slots)


def _is_whole(network: Network, demand: Demand, stripes: Sequence[Stripe]) -> bool:
    """Whether all that a job's trees go over is up, and their roots may be that."""
    for tree in (it.tree for it in stripes):
        pairs = {pair for way in (*tree.up.values(), *tree.ways.values()) for pair in pairwise(way)}
        nodes = np.array(tree.nodes)
        if not network.sums[nodes].all() or not pairs <= network.cable_between.keys():
            return False
        if demand.roots is not None and tree.root not in demand.roots:
            return False
    return True


def _plan(
    view: View,
    network: Network,
    current: Mapping[str, tuple[Stripe, ...]],
    others: Loads,
    broken_network: Network,
    moves: int,
    *,
    arriving: Sequence[Demand] = (),
) -> _Wanted:
    """``arriving``: jobs of which nothing stays, and that are to have other trees."""
    planner = Planner(network, others=others)
    for name, stripes in current.items():
        planner.keep(view.demands[name], stripes)
    hit = planner.change(broken_network, others)
    lost = list(planner.lost)
    for demand in arriving:
        try:
            planner.arrive([demand])
        except RoutingError:
            lost.append(demand.name)
        else:
            hit.append(demand.name)
    before_s = planner.step_s
    broken = {name: planner.stripes(name) for name in hit}
    planner.polish(moves)
    after_s = planner.step_s
    wanted = dict(broken)
    if after_s < before_s * (1 - WORTH):
        wanted = {name: planner.stripes(name) for name in current if name not in lost} | broken
    changed = {
        name: stripes
        for name, stripes in wanted.items()
        if name in broken or _keys(stripes) != _keys(current[name])
    }
    return _Wanted(changed, frozenset(broken), tuple(lost), before_s, after_s)


def _keys(stripes: tuple[Stripe, ...]) -> dict[object, float]:
    return {it.tree.key: round(it.share, 6) for it in stripes}
