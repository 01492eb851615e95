"""Services of hosts that have the rows in place of the ranks: who attaches, and who tends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import torch.distributed as dist

from ina.embed import frames
from ina.embed.attached import Attached
from ina.embed.errors import HostsDifferError, ServiceLostError, TooLittleMemoryError
from ina.embed.sharding import MAX_HOSTS, Table, place
from ina.errors import InaError
from ina.extension.embed import TableSpec
from ina.protocol.peer import Peer
from ina.torch.embedding.gathering import gathered


@dataclass(frozen=True)
class Meeting:
    """What of a group is the same for all ranks, but for the rank."""

    rank: int
    ranks: int
    group: dist.ProcessGroup | None
    key: int
    peers: Sequence[Peer]
    """Of ranks."""


@dataclass(frozen=True)
class Served:
    """Who has the rows: services of hosts, numbered behind the ranks, or, where none is, ranks."""

    meeting: Meeting
    peers: Sequence[Peer] = ()
    """Of services."""
    tended: Attached | None = None
    """Whose rows this rank reads and writes, as the lowest of those that share it."""

    @property
    def all_peers(self) -> list[Peer]:
        """By number: ranks, then services."""
        return [*self.meeting.peers, *self.peers]

    def place(self, tables: Sequence[Table]) -> list[TableSpec]:
        """Where tables lie. Raises TableError."""
        if not self.peers:
            return place(tables, self.meeting.ranks)
        specs = place(tables, len(self.peers))
        for spec in specs:
            spec.first_owner += self.meeting.ranks
        return specs

    def begin(self, order: frames.Begin) -> None:
        """Have this rank's service, if it tends one, begin; `order` but for its number. Collective.

        Raises on all ranks, of one's service: TooLittleMemoryError, ServiceLostError.
        """
        problem: InaError | None = None
        if self.tended is not None:
            number = self.meeting.ranks + list(self.peers).index(self.tended.peer)
            try:
                self.tended.begin(msgspec.structs.replace(order, host=number))
            except (TooLittleMemoryError, ServiceLostError) as error:
                problem = error
        for one in gathered(problem, self.meeting.ranks, self.meeting.group):
            if one is not None:
                raise one


def attach(path: str, address: str, meeting: Meeting) -> Served:
    """Attach to the service of this host at `path`, if it names one. Collective.

    Raises on every rank HostsDifferError: some have one, others have none; ServiceLostError.
    """
    attached, problem = None, ""
    try:
        attached = Attached(path, f"{meeting.key:016x}", address) if path else None
    except ServiceLostError as error:
        problem = str(error)
    place_of = None if attached is None else (attached.service, attached.peer.place)
    said = gathered((problem, place_of), meeting.ranks, meeting.group)
    for problem, _ in said:
        if problem:
            raise ServiceLostError(problem)
    places = [one for _, one in said]
    if attached is None and not any(places):
        return Served(meeting)
    if attached is None or None in places:
        raise HostsDifferError(
            f"rank {places.index(None)} has no service of its host (INA_EMBED), and others have"
        )
    services = list(dict.fromkeys(one for one in places if one is not None))
    if meeting.ranks + len(services) > MAX_HOSTS:
        raise HostsDifferError(
            f"{meeting.ranks} ranks and {len(services)} services: want {MAX_HOSTS} at most"
        )
    served = Served(meeting, [Peer.at(place) for _, place in services])
    if places.index(places[meeting.rank]) == meeting.rank:
        return replace(served, tended=attached)
    attached.close()
    return served
