"""Which switches sum a job, and whether they can. Pure.

A :class:`Placement` finds the trees when all ranks have joined, for only then is it known where
they are. Switches that no links join are :class:`Islands`: fabrics of one switch each. A job is
summed by one of them, and has its slots there since it was created.

A Tofino's registers are a pipe's own: what enters by port 4 (pipe 0) and by port 130 (pipe 1) is
never summed in the same slot. So all that adds to a job's sums at a switch is to enter by one pipe.
Results of a parent touch no register: their port may be anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Protocol

from ina.controller.errors import JobPipesError, NoRoomError
from ina.controller.job import Job
from ina.controller.switches.capacity import Capacity, PipeOf
from ina.fabric.graph import Fabric
from ina.fabric.ports import PortNumber, plain_number
from ina.fabric.shapes import island
from ina.tables.errors import SwitchError
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.mapping import slots_of
from ina.trees.nearest import Nearest
from ina.trees.slots import SlotRange, lanes_of


class Placement(Protocol):
    """A policy over a fabric of switches, links and hosts, or over several."""

    is_known_early: bool
    """Whether any switch sums a job wherever its workers are: one is chosen when the job is
    created, and it has its slots from then on. Else trees are known when all have joined."""

    def switch_of(self, addresses: Sequence[IPv4Address]) -> str:
        """Where a worker with these addresses sends to: the name of its first switch; empty: to
        that of its job, which is known early.

        Raises :class:`JobRequestError`: no host has one of them, or it is behind several switches.
        """
        ...

    def port_to(self, switch: str, address: IPv4Address) -> int:
        """The port of a switch, by name, behind which a host is.

        Raises :class:`JobRequestError`: it is nowhere, or no path leads there.
        """
        ...

    def forest(self, job: str, endpoints: Mapping[int, Endpoint]) -> Forest:
        """The trees of a job whose workers, by rank, are all of these.

        A mode that is not striped takes the first. Where a worker's first node is not the switch
        that :meth:`switch_of` has named, the node has ``rank_ports``. Raises
        :class:`JobRequestError`: there are no such trees.
        """
        ...


class _Jobs(Protocol):
    def get(self, name: str) -> Job: ...


class Islands:
    """Of several fabrics of one switch each; in that of its first switch, jobs are ``nearest``."""

    is_known_early = True

    def __init__(
        self,
        jobs: _Jobs,
        fabrics: Iterable[Fabric] = (),
        number: PortNumber = plain_number,
    ) -> None:
        """``jobs``: with their switches. ``fabrics``: where hosts are; of a switch that has none
        among them, all are behind its port 1. ``number``: of a port; it may raise.
        """
        self._jobs = jobs
        self._number = number
        self._nearest = {it.switches[0]: Nearest(it, number) for it in fabrics}

    def switch_of(self, addresses: Sequence[IPv4Address]) -> str:
        """None is nearer than another."""
        return ""

    def port_to(self, switch: str, address: IPv4Address) -> int:
        """As :meth:`Nearest.port_to`."""
        return self._at(switch).port_to(switch, address)

    def forest(self, job: str, endpoints: Mapping[int, Endpoint]) -> Forest:
        """As :meth:`Nearest.forest`."""
        return self._at(self._jobs.get(job).island).forest(job, endpoints)

    def _at(self, switch: str) -> Nearest:
        return self._nearest.get(switch) or Nearest(island(switch), self._number)


def first_with_room(
    job: str, slots: int, switches: Mapping[str, Capacity], *, is_sized: bool = True
) -> str:
    """The first in the order of the configuration, wherever the job's workers are.

    ``slots``: that it asks for; 0: the default. While none can be reached, the first of all: its
    workers hear why when they join. ``is_sized``: whether it has slots of its own; else there is
    always room.

    Raises :class:`NoRoomError`, with the numbers; :class:`JobRequestError`: none ever grants so
    many.
    """
    reached = [name for name, capacity in switches.items() if capacity.is_reached()]
    candidates = reached or list(switches)
    if len(candidates) == 1 or not is_sized:
        return candidates[0]  # whether it has room, is found when its slots are taken
    for name in candidates:
        if switches[name].memory.fits(job, slots, []):
            return name
    whys = (f"switch {name}: {switches[name].memory.why_full(job, slots)}" for name in candidates)
    raise NoRoomError(f"job {job!r}: no slots left: {'; '.join(whys)}")


def check_forest(job: str, forest: Forest, switches: Mapping[str, Capacity]) -> None:
    """Raises :class:`JobRequestError`: what its switches run cannot work together."""
    values = {name: switches[name].values for name in forest.switches}
    if len(set(values.values())) > 1:
        said = ", ".join(f"{name} {count}" for name, count in values.items())
        raise JobRequestError(
            f"job {job!r}: its switches sum different numbers of values a packet ({said}): give all"
            " of a fabric the same switch.values"
        )


def slots_by_switch(
    job: str, slots: int, forest: Forest, switches: Mapping[str, Capacity]
) -> dict[str, int]:
    """Where it is to have slots of its own, and how many; 0: as many as is usual there.

    ``slots``: that it asks for, of all trees together; 0: as is usual where most lanes pass. Raises
    :class:`JobRequestError`: too few for so many trees, or a switch never grants so many.
    """
    if len(forest) > 1:
        usual = min(switches[name].memory.cost(job, 0) for name in forest.own)
        slots = forest.divisible(job, slots or usual)
    return {name: forest.slots_at(name, slots) for name in forest.own}


def check_room(job: str, slots: int, forest: Forest, switches: Mapping[str, Capacity]) -> None:
    """Raises :class:`NoRoomError` where not every switch of the trees has room; says which and why.

    :class:`JobRequestError`: as :func:`slots_by_switch`. :class:`SwitchError`: one cannot be
    reached: the job would keep its slots there until it is back.
    """
    away = [name for name in forest.switches if not switches[name].is_reached()]
    if away:
        raise SwitchError(
            f"job {job!r}: {', '.join(map(repr, away))} cannot be reached, and no way leads around"
        )
    full = []
    for name, its in slots_by_switch(job, slots, forest, switches).items():
        memory = switches[name].memory
        if not memory.fits(job, its, []):
            full.append(f"switch {name}: {memory.why_full(job, its)}")
    if full:
        several = f" on {len(full)} of {len(forest.switches)} switches that would sum it"
        of = "" if forest.has_one_switch else several
        raise NoRoomError(f"job {job!r}: no slots left{of}: {'; '.join(full)}")


def window(
    forest: Forest, memory: Mapping[str, SlotRange], switches: Mapping[str, Capacity]
) -> int:
    """Packets in flight that a worker of a job with these slots may have."""
    queues = (
        max(1, forest.slots_of(name, most))  # of which as many pass this switch as it bears
        for name in memory
        if (most := switches[name].max_window)
    )
    return min([lanes_of(slots_of(forest, memory)), *queues])


def check_pipes(job: Job, over: Forest, switches: Mapping[str, Capacity]) -> None:
    """Raises :class:`JobPipesError` if children in a tree are in several pipes of their switch."""
    for tree in over:
        for node in tree.switches:
            joined = {rank: job.members[rank].switch_port for rank in node.ranks}
            ranks = {f"rank {rank}": node.port_of(rank, port) for rank, port in joined.items()}
            nodes = {
                (f"switch {it}" if tree[it].host is None else it): at
                for it, at in zip(node.nodes, node.ports, strict=True)
            }
            _check(job, ranks | nodes, switches[node.switch].pipe_of)


def _check(job: Job, ports: Mapping[str, int], pipe_of: PipeOf) -> None:
    if len({pipe_of(port) for port in ports.values()}) <= 1:
        return
    places = ", ".join(
        f"{who} behind port {port} (pipe {pipe_of(port)})" for who, port in ports.items()
    )
    raise JobPipesError(
        f"job {job.name!r}: its workers are in different pipes of the switch: {places}; a sum is in"
        " one pipe's registers, so all must be behind ports of the same pipe"
    )
