"""Which switches and links are down, and the events by which that changes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ina.fabric.errors import FabricError


@dataclass(frozen=True)
class Down:
    """What cannot be used now."""

    switches: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()
    """By the two switches that each joins."""

    def __bool__(self) -> bool:
        return bool(self.switches or self.links)

    def leaves(self, way: Sequence[str]) -> bool:
        """Whether all of a way is up, given by the switches on it."""
        on_it = (frozenset(pair) for pair in pairwise(way))
        return self.switches.isdisjoint(way) and self.links.isdisjoint(on_it)


NOTHING = Down()


@dataclass(frozen=True)
class Outage:
    """A switch or a link goes down, or comes up."""

    name: str
    is_down: bool
    ends: tuple[str, str] | None
    """Of a link; None: it is a switch."""

    def __str__(self) -> str:
        return f"{self.name} is {'down' if self.is_down else 'up again'}"


class Outages:
    """Of one graph, whose links are called as their ends: ``leaf1-spine1``."""

    def __init__(
        self,
        switches: Collection[str],
        links: Iterable[tuple[str, str]],
        down: Iterable[str] = (),
    ) -> None:
        """``down``: names of what is; those that nothing has are dropped."""
        self._switches = switches
        self._links: dict[str, tuple[str, str]] = {}
        for ends in links:
            # A second cable between two is down with the first.
            if "-".join(reversed(ends)) not in self._links:
                self._links["-".join(ends)] = ends
        self._names = {name for it in down if (name := self._known(it))}

    @property
    def parts(self) -> list[str]:
        """All that can be down: switches, then links."""
        return [*self._switches, *self._links]

    @property
    def names(self) -> list[str]:
        """What is down."""
        return sorted(self._names)

    @property
    def down(self) -> Down:
        """The same, by ends of links."""
        switches = self._names.intersection(self._switches)
        ends = (frozenset(self._links[name]) for name in self._names - switches)
        return Down(frozenset(switches), frozenset(ends))

    def outage(self, name: str, *, is_down: bool) -> Outage | None:
        """What :meth:`put` is to be given for a switch or a link to be down or up; None: it is.

        A link may be called from either end. Raises :class:`FabricError`: nothing is called so.
        """
        known = self._known(name)
        if not known:
            raise FabricError(f"no switch or link is called {name!r}")
        if (known in self._names) == is_down:
            return None
        return Outage(known, is_down, self._links.get(known))

    def put(self, outage: Outage) -> None:
        """From now on it is so."""
        self._names = self.names_with(outage)

    def names_with(self, outage: Outage) -> set[str]:
        """What is down once it is so."""
        return self._names | {outage.name} if outage.is_down else self._names - {outage.name}

    def only(self, names: Iterable[str]) -> Iterator[Outage]:
        """Puts just these down and all else up; yields what changes, what goes down first.

        Raises :class:`FabricError`: nothing is called so.
        """
        wanted = set(names)
        for is_down, changed in ((True, wanted - self._names), (False, self._names - wanted)):
            for name in sorted(changed):
                if (outage := self.outage(name, is_down=is_down)) is not None:
                    self.put(outage)
                    yield outage

    def _known(self, name: str) -> str:
        """As a link is called from its first end; empty: there is none."""
        if name in self._switches or name in self._links:
            return name
        return next((it for it, ends in self._links.items() if name == "-".join(ends[::-1])), "")
