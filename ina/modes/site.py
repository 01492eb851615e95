"""What a mode looks at where a job is placed: the job as it asks, and the controller's switches."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Protocol

from ina.trees.aggregators import Above
from ina.trees.tree import HostNode


@dataclass(frozen=True)
class Asking:
    """A job that is to have trees."""

    job: str
    slots: int
    """That it asks for; 0: as many as is usual."""
    had: Container[str]
    """Switches where it has slots already."""
    runs: HostNode | None
    """The aggregator in a process of the job; None: it runs none, or that is not known yet."""
    is_whole: bool
    """Whether all of its ranks have joined."""
    port_to: Callable[[str, IPv4Address], int]
    """The port of a switch, by name, behind which a host is. Raises :class:`JobRequestError`."""


class Site(Protocol):
    """A controller's switches, aggregators among them, by name."""

    most_aggregators: int
    """Among how many a job's lanes are dealt, at most: a power of two."""

    @property
    def is_embedded(self) -> bool:
        """Whether jobs run their aggregators, as none is configured."""
        ...

    def makes_results(self, switch: str) -> bool:
        """Whether it is a switch with slots to be an aggregator, too."""
        ...

    def is_switch(self, name: str) -> bool:
        """Whether it is on the way between workers; else it is an aggregator and nothing else."""
        ...

    def shares_slots(self, switch: str) -> bool:
        """Whether it has some that jobs share."""
        ...

    def is_up(self, name: str) -> bool:
        """Whether nobody says that it is down."""
        ...

    def is_reached(self, name: str) -> bool:
        """Whether entries can be written to it now, as far as is known."""
        ...

    def above(self, switch: str) -> Sequence[Above] | None:
        """The aggregators that it reaches over what is up, the nearest first; None: it is not known
        where they are."""
        ...

    def above_at_all(self, switch: str) -> Sequence[Above]:
        """Those that it reaches when everything is up."""
        ...

    def leads_to(self, switch: str, address: IPv4Address) -> bool:
        """Whether a way to a host goes over what is up alone, or none is known."""
        ...
