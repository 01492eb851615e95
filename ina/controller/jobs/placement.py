"""Which switches sum a job. Pure.

Without a fabric, switches are islands: a job is summed by one of them, known when it is created.
In a fabric, a :class:`Placement` finds the tree when all ranks have joined, for only then is it
known where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Protocol

from ina.controller.errors import JobRequestError, NoRoomError, SwitchError
from ina.controller.job import Endpoint
from ina.controller.switches.capacity import Capacity
from ina.controller.topology.tree import Tree
from ina.p4.catalogue import POOL


class Placement(Protocol):
    """A policy over a fabric of switches, links and hosts."""

    def switch_of(self, addresses: Sequence[IPv4Address]) -> str:
        """Where a worker with these addresses sends to: the name of its first switch.

        Raises :class:`JobRequestError`: no host has one of them, or it is behind several switches.
        """
        ...

    def port_to(self, switch: str, address: IPv4Address) -> int:
        """The port of a switch, by name, behind which a host is.

        Raises :class:`JobRequestError`: it is nowhere, or no path leads there.
        """
        ...

    def tree(self, job: str, endpoints: Mapping[int, Endpoint]) -> Tree:
        """The tree of a job whose workers, by rank, are all of these.

        Each is below the switch that ``Endpoint.switch`` names, where it does. Raises
        :class:`JobRequestError`: there is no such tree.
        """
        ...


def first_with_room(
    job: str, slots: int, switches: Mapping[str, Capacity], mode: str = POOL
) -> str:
    """The first in the order of the configuration, wherever the job's workers are.

    ``slots``: that it asks for; 0: the default. While none can be reached, the first of all: its
    workers hear why when they join. Where slots are shared there is always room.

    Raises :class:`NoRoomError`, with the numbers; :class:`JobRequestError`: none ever grants so
    many.
    """
    reached = [name for name, capacity in switches.items() if capacity.is_reached()]
    candidates = reached or list(switches)
    if len(candidates) == 1 or mode != POOL:
        return candidates[0]  # whether it has room, is found when its slots are taken
    for name in candidates:
        if switches[name].memory.fits(job, slots, []):
            return name
    whys = (f"switch {name}: {switches[name].memory.why_full(job, slots)}" for name in candidates)
    raise NoRoomError(f"job {job!r}: no slots left: {'; '.join(whys)}")


def check_tree(job: str, tree: Tree, switches: Mapping[str, Capacity]) -> None:
    """Raises :class:`JobRequestError`: what its switches run cannot work together."""
    values = {node.switch: switches[node.switch].values for node in tree.switches}
    if len(set(values.values())) > 1:
        said = ", ".join(f"{name} {count}" for name, count in values.items())
        raise JobRequestError(
            f"job {job!r}: its switches sum different numbers of values a packet ({said}): give all"
            " of a fabric the same switch.values"
        )


def check_room(job: str, slots: int, tree: Tree, switches: Mapping[str, Capacity]) -> None:
    """Raises :class:`NoRoomError` where not every switch of the tree has room; says which, and why.

    :class:`JobRequestError`: one never grants so many slots. :class:`SwitchError`: one cannot be
    reached: the job would keep its slots there until it is back.
    """
    away = [node.switch for node in tree.switches if not switches[node.switch].is_reached()]
    if away:
        raise SwitchError(
            f"job {job!r}: {', '.join(map(repr, away))} cannot be reached, and no way leads around"
        )
    full = []
    for node in tree.switches:
        memory = switches[node.switch].memory
        its = tree.at_each_root(slots) if slots and node.parent is None else slots
        if not node.is_shared and not memory.fits(job, its, []):
            full.append(f"switch {node.switch}: {memory.why_full(job, its)}")
    if full:
        several = f" on {len(full)} of {len(tree.switches)} switches that would sum it"
        of = "" if tree.has_one_switch else several
        raise NoRoomError(f"job {job!r}: no slots left{of}: {'; '.join(full)}")
