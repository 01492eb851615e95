"""What a controller has for jobs of each mode: switches, aggregators, slots. Pure.

A job has slots of its own where its mode says so; elsewhere it may claim some of those that jobs
share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address

from ina import modes
from ina.controller.errors import NoRoomError
from ina.controller.job import Job
from ina.controller.jobs.placement import slots_by_switch
from ina.controller.switches.capacity import Capacity
from ina.fabric.outages import NOTHING, Down
from ina.modes.site import Asking
from ina.p4.names import DEFAULT_MODE
from ina.trees.aggregators import Above, Aggregators
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.mapping import slots_of
from ina.trees.slots import SlotRange, lanes_of

PortTo = Callable[[str, IPv4Address], int]
"""The port of a switch, by name, behind which a host is. Raises :class:`JobRequestError`."""


class ControllerSite:
    """What a controller's jobs can have of it."""

    def __init__(
        self,
        switches: Mapping[str, Capacity],
        aggregators: Aggregators | None = None,
        mode: str = DEFAULT_MODE,
        *,
        aggregators_a_job: int = 1,
        down: Callable[[], Down] = lambda: NOTHING,
    ) -> None:
        """``mode``: of jobs that do not ask. ``aggregators_a_job``: a power of two, at most.
        ``down``: what no way to an aggregator goes over, where another does; aggregators, too, by
        name."""
        self._switches = switches
        self._aggregators = aggregators
        self._mode = mode
        self.most_aggregators = aggregators_a_job
        self.down = down

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
        able = {name: it for name, it in switches.items() if self._sums(name, mode)}
        if not able:
            raise JobRequestError(self._runs_another(job, mode, next(iter(switches))))
        return able

    def forest(self, job: Job, over: Forest, port_to: PortTo, *, mode: str = "") -> Forest:
        """The trees of a job that is to be summed ``over`` these, in ``mode``; by default its own.

        ``port_to``: where hosts are. Raises :class:`JobRequestError`: a switch runs
        another mode's program, or what else the mode says.
        """
        mode = mode or job.mode
        for name in over.switches:
            if not self._sums(name, mode):
                raise JobRequestError(self._runs_another(job.name, mode, name))
        forest = modes.of(mode).forest(_asking(job, port_to), over, self)
        lacking = {name for name, it in self._switches.items() if not it.expands}
        return forest.without_expansion(lacking) if lacking else forest

    def bare(self, job: Job, over: Forest) -> Forest:
        """What :meth:`forest` was given for this one, if it was of the mode that the job has."""
        return modes.of(job.mode).bare(over, self)

    def tops(self, job: Job, port_to: PortTo) -> list[str]:
        """Switches that may be the root of the placement's tree, as things are; all if none may."""
        mode, asking = modes.of(job.mode), _asking(job, port_to)
        switches = list(self.switches())
        found = [it for it in switches if self.is_up(it) and mode.may_top(asking, it, self)]
        return found or switches

    def levels_above(self, job: Job, tops: Iterable[str]) -> int:
        """Of nodes above the root of the placement's tree, at most, if it is one of these."""
        mode = modes.of(job.mode)
        return max((mode.levels_above(it, self) for it in tops), default=0)

    def makes_results(self, switch: str) -> bool:
        """See :meth:`ina.modes.site.Site.makes_results`; likewise the next ones."""
        return self._switches[switch].is_aggregator

    def is_switch(self, name: str) -> bool:
        """Whether it is on the way between workers."""
        return self._switches[name].is_switch

    def shares_slots(self, switch: str) -> bool:
        """Whether it has some that jobs share."""
        return self._switches[switch].shared is not None

    def is_up(self, name: str) -> bool:
        """Whether nobody says that it is down."""
        return name not in self.down().switches

    def is_reached(self, name: str) -> bool:
        """Whether entries can be written to it now."""
        return self._switches[name].is_reached()

    def above(self, switch: str) -> list[Above] | None:
        """The aggregators that it reaches over what is up."""
        if self._aggregators is None:
            return None
        return self._aggregators.above(switch, self.down().leaves)

    def above_at_all(self, switch: str) -> list[Above]:
        """Those that it reaches when everything is up."""
        return [] if self._aggregators is None else self._aggregators.above(switch)

    def leads_to(self, switch: str, address: IPv4Address) -> bool:
        """Whether a way to a host goes over what is up alone."""
        known = self._aggregators
        way = () if known is None else known.way_to_host(switch, address)
        return not way or self.down().leaves(way)

    def _sums(self, switch: str, mode: str) -> bool:
        program = self._switches[switch].program
        return modes.sums(modes.of(mode), program, shares_slots=self.shares_slots(switch))

    def _runs_another(self, job: str, mode: str, switch: str) -> str:
        return (
            f"job {job!r}: mode {mode!r}, and switch {switch!r} runs the program of mode"
            f" {self._switches[switch].program!r}: give it mode = {mode!r}, or the job mode"
            f" {DEFAULT_MODE!r}"
        )

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


def _asking(job: Job, port_to: PortTo) -> Asking:
    runs = job.members[0].aggregator if 0 in job.members else None
    return Asking(job.name, job.spec.slots, job.memory, runs, not job.missing(), port_to)
