"""Jobs of mode ``shared``: an aggregator above their switches, and slots shared with other jobs.

In mode ``pool`` a job has slots of its own on each of its switches. In mode ``shared`` it has some
at its aggregator alone, where all its sums are made whole; on the switches below it may claim slots
of an arc, each for as long as a sum takes (docs/shared_slots.md). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import IPv4Address

from ina import modes
from ina.controller.errors import NoRoomError
from ina.controller.job import Job
from ina.controller.jobs.placement import slots_by_switch
from ina.controller.routing.from_fabric import NOTHING, Down
from ina.controller.switches.capacity import Capacity
from ina.p4.names import DEFAULT_MODE
from ina.trees.aggregators import Above, Aggregators
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.mapping import slots_of
from ina.trees.slots import SlotRange, lanes_of
from ina.trees.tree import HostNode, Node, Tree, below_itself, with_aggregator, without_aggregator

PortTo = Callable[[str, IPv4Address], int]
"""The port of a switch, by name, behind which a host is. Raises :class:`JobRequestError`."""


class Sharing:
    """What a controller's jobs can have of it."""

    def __init__(
        self,
        switches: Mapping[str, Capacity],
        aggregators: Aggregators | None = None,
        mode: str = DEFAULT_MODE,
        *,
        aggregators_a_job: int = 1,
    ) -> None:
        """``mode``: of jobs that do not ask. ``aggregators_a_job``: a power of two, at most."""
        self._switches = switches
        self._aggregators = aggregators
        self._mode = mode
        self._most = aggregators_a_job
        self.down: Callable[[], Down] = lambda: NOTHING
        """What no way to an aggregator goes over, where another does; aggregators, too, by name."""

    @property
    def is_embedded(self) -> bool:
        """Whether jobs run their aggregators, as none is configured."""
        return not self._aggregators and not any(it.is_aggregator for it in self._switches.values())

    def mode(self, job: str, asked: str) -> str:
        """The mode of a new job; raises :class:`JobRequestError`: there is no such."""
        try:
            return modes.of(asked or self._mode).name
        except modes.UnknownModeError as error:
            raise JobRequestError(f"job {job!r}: {error}") from None

    def wants_aggregator(self, job: Job) -> bool:
        """Whether rank 0 is to run one for it."""
        return modes.of(job.mode).needs_aggregator and self.is_embedded

    def switches(self) -> dict[str, Capacity]:
        """Those on the way between workers, by name."""
        return {name: it for name, it in self._switches.items() if it.is_switch}

    def islands(self, job: str, mode: str) -> dict[str, Capacity]:
        """Switches that can sum a job by themselves, by name.

        Raises :class:`JobRequestError`: there is none.
        """
        switches = self.switches()
        able = {name: it for name, it in switches.items() if _sums(it, mode)}
        if not able:
            raise JobRequestError(_runs_another(job, mode, next(iter(switches))))
        return able

    def forest(
        self, job: Job, over: Forest, port_to: PortTo | None = None, *, mode: str = ""
    ) -> Forest:
        """The trees of a job that is to be summed ``over`` these, in ``mode``; by default its own.

        In mode ``shared`` it is summed over the first, below each of its aggregators. ``port_to``:
        in a fabric, where hosts are. Of a job that not all have joined whose own aggregator is not
        known yet, without that. Raises :class:`JobRequestError`: a switch runs the program of mode
        ``pool``, or no aggregator is to be had.
        """
        mode = mode or job.mode
        for name in over.switches:
            if not _sums(self._switches[name], mode):
                raise JobRequestError(_runs_another(job.name, mode, name))
        if not modes.of(mode).needs_aggregator:
            return over
        tree = over.trees[0]
        top = tree.root
        if self._switches[top.switch].is_aggregator:
            return forest_of(below_itself(tree))
        above = self._above(job, mode, top, port_to)
        if not above:
            return forest_of(Tree(tuple(replace(it, is_shared=True) for it in tree)))
        try:
            return forest_of(*(with_aggregator(tree, it.node, it.port) for it in above))
        except JobRequestError as error:
            raise JobRequestError(f"job {job.name!r}: {error}") from None

    def bare(self, over: Forest) -> Forest:
        """What :meth:`forest` was given for this one: without aggregators above its switches."""
        if not over.is_shared:
            return over
        root = over.root
        is_above = root.host is not None or not self._switches[root.switch].is_switch
        return forest_of(without_aggregator(over.trees[0], is_above=is_above))

    def tops(self, job: Job) -> list[str]:
        """Switches that may be the root of its trees, or be below its aggregators, as things are:
        all of them where no aggregator is reached.
        """
        down = self.down()
        switches = [name for name, it in self._switches.items() if it.is_switch]
        found = [name for name in switches if name not in down.switches and self._is_top(job, name)]
        return found or switches

    def _is_top(self, job: Job, name: str) -> bool:
        if self._switches[name].shared is None:
            return False
        if self._switches[name].is_aggregator:
            return True
        if self._aggregators is None:
            return True
        if self.is_embedded:
            runs = job.members[0].aggregator if 0 in job.members else None
            way = () if runs is None else self._aggregators.way_to_host(name, runs.address)
            return not way or self.down().leaves(way)
        return any(self._is_usable(it) for it in self._aggregators.above(name, self.down().leaves))

    def _is_usable(self, it: Above) -> bool:
        name = it.node.switch
        return self._switches[name].is_reached() and name not in self.down().switches

    def is_below_another(self, switch: str) -> bool:
        """Whether what a job's results are made by is above this switch, if it is its root."""
        return not self._switches[switch].is_aggregator

    def _above(self, job: Job, mode: str, top: Node, port_to: PortTo | None) -> list[Above]:
        """The aggregators that its lanes are dealt to; none: it is not known yet."""
        if self.is_embedded:
            runs = job.members[0].aggregator if 0 in job.members else None
            if runs is not None:
                port = runs.switch_port if port_to is None else port_to(top.switch, runs.address)
                return [embedded(top.switch, runs, port)]
            if job.missing():
                return []
            raise JobRequestError(
                f"job {job.name!r}: mode {mode!r} wants an aggregator: the controller's file lists"
                " none, and rank 0 runs none"
            )
        found = [] if self._aggregators is None else self._aggregators.above(top.switch)
        if self._aggregators is not None:
            found = self._aggregators.above(top.switch, self.down().leaves) or found
        away = self.down().switches
        had = [it for it in found if it.node.switch in job.memory and it.node.switch not in away]
        reached = [it for it in found if self._is_usable(it)]
        if not found:
            raise JobRequestError(
                f"job {job.name!r}: mode {mode!r} wants an aggregator, and none is to be reached"
                f" from switch {top.switch!r}"
            )
        usable = had or reached or found
        lanes = job.slots_asked // 2 or self._most
        count = min(len(usable), self._most, lanes)
        return usable[: 1 << (count.bit_length() - 1)]  # lanes are a power of two

    def take(self, job: Job, over: Forest, wanted: int, limit: int | None) -> dict[str, SlotRange]:
        """Slots for a job on each switch of its trees; of those of its own, all have room.

        ``wanted``: of its own, of all trees together; 0: as many as is usual. ``limit``: how many
        it may claim of those that are shared, on all together; None: any number. Raises
        :class:`NoRoomError`: a switch that is alone has no room; :class:`JobRequestError`.
        """
        taken: dict[str, SlotRange] = {}
        usual = self._switches[over.switches[0]].memory.cost(job.name, 0)
        try:
            for name, its in slots_by_switch(job.name, wanted, over, self._switches).items():
                taken[name] = self._switches[name].memory.take(job.name, its)
        except (JobRequestError, NoRoomError):
            for name, its_own in taken.items():
                self._switches[name].memory.give_back(its_own)
            raise
        slots = slots_of(over, taken) or wanted or usual
        return taken | self.arcs(over, slots, limit)

    def arcs(self, over: Forest, slots: int, limit: int | None) -> dict[str, SlotRange]:
        """Of shared slots of trees' switches, for a job that has ``slots`` of its own.

        ``limit``: as of :meth:`take`.
        """
        taken = {}
        for name in over.switches:
            shared = self._switches[name].shared
            if over.shares_slots_of(name) and shared is not None:
                its = over.slots_at(name, slots)
                lanes = lanes_of(its)
                arc = shared.take(its, lanes if limit is None else min(lanes, limit))
                limit = None if limit is None else limit - arc.reserved
                taken[name] = arc
        return taken


def embedded(top: str, runs: HostNode, port: int) -> Above:
    """An aggregator in a process of the job."""
    return Above(Node(runs.name, (), (top,), (runs.uplink_port,), host=runs), port)


def _sums(switch: Capacity, mode: str) -> bool:
    return modes.of(mode).runs_on(shares_slots=switch.shared is not None)


def _runs_another(job: str, mode: str, switch: str) -> str:
    return (
        f"job {job!r}: mode {mode!r}, and switch {switch!r} runs the program of mode"
        f" {DEFAULT_MODE!r}: give it mode = {mode!r}, or the job mode {DEFAULT_MODE!r}"
    )
