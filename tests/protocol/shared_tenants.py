"""Jobs that share switches, for the search: what their workers send by each of their mappings.

A *mapping* of a job is an epoch with slots and lanes. A job has one, or two: after a restart each
worker and switch goes from the first to the second; a change while it runs (``resize.md``) has both
side by side, and its operations from a number on, which rank 0 names, use the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ina.protocol import serial
from ina.protocol.spec import Flag
from ina.protocol.switch_model import ModelJob
from tests.protocol.shared_fabric import Arc, SharedFabric
from tests.protocol.tree_fabric import WORKER
from tests.protocol.tree_traffic import FIRST_EPOCH, Packet, Traffic

Change = Literal["", "restart", "resize"]


@dataclass(frozen=True)
class Tenant:
    """A job: the switch above each switch, the first switch of each worker, and its chunks.

    ``own``: switches below the root where it has slots of its own. ``first``, ``window``,
    ``claimable``: its arc, see :class:`Arc`. ``lanes``: those that it uses, where its other lanes
    have another aggregator: then they are a tenant of their own, the one before or after it, with
    ``same_epoch``.
    """

    parents: tuple[int | None, ...]
    workers: tuple[int, ...]
    chunks: int
    window: int = 1
    first: int = 0
    claimable: int | None = None  # None: all lanes
    own: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()  # empty: all
    silent: tuple[int, ...] = ()  # chunks whose packets have no values
    same_epoch: bool = False  # as the tenant before it
    change: Change = ""
    to: tuple[int, int] = (0, 1)  # of a resize: the second mapping's first slot and window
    to_own: tuple[int, ...] | None = None  # and its ``own``; None: the same
    moves_at: int = 0  # of a resize: the chunks from here on use it

    @property
    def mappings(self) -> int:
        """How many it has."""
        return 2 if self.change else 1

    def arc(self, mapping: int, versions: int) -> Arc:
        """``versions``: of a lane's slot at the aggregator; 2."""
        first, window = self.first, self.window
        if mapping and self.change == "resize":
            first, window = self.to
        claimable = window if self.claimable is None else min(self.claimable, window)
        return Arc(first, window, claimable, versions * window)

    def chunks_by(self, mapping: int) -> int:
        """That workers send by it, at most."""
        return self.chunks - self.moves_at if mapping and self.change == "resize" else self.chunks


@dataclass(frozen=True)
class Owned(Packet):
    """On its way to a switch."""

    mapping: int = 0  # of all mappings of all jobs

    @property
    def is_resend(self) -> bool:
        """As a switch sees it."""
        return bool(self.header.flags & Flag.RESEND) or self.header.copy > 0

    def __str__(self) -> str:
        again = " again" if self.is_resend else ""
        return f"{super().__str__()}{again} of {self.header.contributors:#b}"


@dataclass(frozen=True)
class Mapping:
    """One of one job."""

    index: int  # among all
    job: int
    number: int  # of the job's
    fabric: SharedFabric
    arc: Arc
    traffic: Traffic
    lanes: tuple[int, ...]  # that it uses

    @property
    def told(self) -> int:
        """Its bit in what a switch has been told: whether it admits this mapping."""
        return 1 << 2 * self.job + self.number

    def is_told(self, told: int) -> bool:
        return told & self.told != 0

    def entries(self, switch: int) -> ModelJob:
        """What the controller installs at a switch."""
        return self.fabric.shared_job(
            switch, self.traffic.number, self.traffic.first_epoch, self.arc
        )

    def chunk(self, seq: int) -> int:
        """Which has a sequence number."""
        return serial.add(seq, -self.traffic.first_seq)

    def send(self, worker: int, chunk: int) -> Iterator[Owned]:
        """A worker's packet of a chunk, sent first, then again. It claims to be of everybody."""
        header, values = self.traffic.part(0, worker, chunk)
        place, first = WORKER + worker, self.fabric.workers[worker]
        taken = self.fabric.carry(place, self.fabric.address(first, self.fabric.up[place]))
        assert taken is not None
        header = replace(header, contributors=self.fabric.full_bitmap)
        for flags, copy in ((header.flags & ~Flag.RESEND, 0), (header.flags, 1)):
            said = replace(header, flags=flags, copy=copy)
            yield Owned(*taken, said, values, worker, header.path, self.index)

    def strangers(self) -> Iterator[Owned]:
        """What others send in its name; all of it must be dropped."""
        for packet in self.traffic.strangers(1):
            header = replace(packet.header, contributors=self.fabric.full_bitmap)
            yield Owned(**{**vars(packet), "header": header}, mapping=self.index)


@dataclass(frozen=True)
class Tenants:
    """All jobs."""

    jobs: tuple[Tenant, ...]
    versions: int = 2

    @cached_property
    def mappings(self) -> tuple[Mapping, ...]:
        """Each job's first, and its second if it has one; epochs grow over all jobs."""
        found: list[Mapping] = []
        values = 0
        for job, tenant in enumerate(self.jobs):
            for number in range(tenant.mappings):
                own = tenant.own if number == 0 or tenant.to_own is None else tenant.to_own
                fabric = SharedFabric(tenant.parents, tenant.workers, own)
                arc = tenant.arc(number, self.versions)
                traffic = Traffic(
                    fabric,
                    tenant.chunks_by(number),
                    arc.slots,
                    first_seq=2**serial.SERIAL_BITS - 2 * arc.window,  # it wraps soon
                    number=1 + job,
                    first_epoch=FIRST_EPOCH + len(found) - tenant.same_epoch,
                    silent=frozenset(tenant.silent),
                    first_value=values,
                    values=sum(it.chunks_by(k) for it in self.jobs for k in range(it.mappings)),
                )
                values += tenant.chunks_by(number)
                lanes = tenant.lanes or tuple(range(arc.window))
                found.append(Mapping(len(found), job, number, fabric, arc, traffic, lanes))
        return tuple(found)

    def told_of(self, mapping: Mapping) -> int:
        """What a switch has been told that admits this mapping, and others' first."""
        others = [it for it in self.of if it[0].job != mapping.job]
        return mapping.told | sum(it[0].told for it in others)

    @cached_property
    def of(self) -> tuple[tuple[Mapping, ...], ...]:
        """By job and number."""
        return tuple(
            tuple(it for it in self.mappings if it.job == job) for job in range(len(self.jobs))
        )
