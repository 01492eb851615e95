"""The reference model of one switch: UDP payloads in, results out, by the rules.

The switch is the root of a job's tree, or it has a parent: then it sends complete sums up, and
hands down what comes back. Its children are workers, or switches like itself; it cannot tell.

A job has slots of its own there (mode `pool`), or claims slots that it shares (`shared`); in mode
`stream` the last word of its packets is the number of a block, of which the least stays.

In rounds of another shape than SUM some packets have no values. What leaves then has the slot's,
whatever the packet brought, but for copies that lose them again on their way (``strips``).

It is the oracle that the compiled P4 program is compared with, so it is written for reading: one
method a step, in the order of the P4 controls. Addresses are numbers as they stand in the packet.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from ina.errors import InvalidInputError
from ina.protocol.codec import Header, announced_bytes, decode
from ina.protocol.errors import UnknownKindError, UnknownVersionError
from ina.protocol.shared_model import Claims, release, share
from ina.protocol.slot_model import STICKY_FLAGS, Contribution, Outcome, Slot, Tag
from ina.protocol.spec import (
    ALL_WORKERS,
    HEADER_BYTES,
    MAX_WORKERS,
    NO_FLAGS,
    PATH_BITS,
    RESULTS_UDP_PORT,
    USUAL_WIDTHS,
    VALUE_BYTES,
    DropReason,
    Flag,
    Kind,
    Shape,
    ValueType,
    path_mask,
    path_of,
)
from ina.protocol.strips import KEEPS, Strips

ALONE = (Outcome.COLLISION, Outcome.BYPASSED, Outcome.LATE, Outcome.MISSED)
"""Outcomes of contributions that go up as they came."""

EPOCH_BITS = 16
"""Bits of the 32-bit epoch that the header carries."""


@dataclass(frozen=True)
class Attachment:
    """Where a neighbour is: the switch's port towards it, its IPv4 address and its UDP port."""

    port: int
    ipv4: int
    udp_port: int


@dataclass(frozen=True)
class Sharing:
    """Who listens to an IP multicast address: those behind one port share one copy of a result."""

    workers: frozenset[int]  # by rank
    ipv4: int  # of the multicast group
    udp_port: int = RESULTS_UDP_PORT


@dataclass(frozen=True)
class Parent:
    """The switch above, and what this one is to it."""

    at: Attachment
    worker: int  # this switch's index among the parent's children, 0..31
    level: int  # of this switch: 1 if its children are workers
    path_mask: int  # the bits of a path that say to which child of this switch it leads
    ways: tuple[int, ...]  # those bits, by index of the children
    strips: Strips = KEEPS  # which sums go up without values

    @classmethod
    def above(cls, at: Attachment, way: tuple[int, ...], level: int, children: int) -> Parent:
        """Of a switch that ``way``, indices from the root down, leads to; it has ``children``."""
        mask = path_mask(USUAL_WIDTHS[: len(way) + 1])
        ways = tuple(path_of((*way, child)) & mask for child in range(children))
        return cls(at, way[-1], level, mask, ways)


@dataclass(frozen=True)
class ModelJob:
    """What the controller installs for a job. ``epoch`` is the whole 32-bit number, from 1."""

    number: int
    epoch: int
    first_slot: int  # physical
    slots: int  # both versions: 2W
    workers: tuple[Attachment, ...]  # the children, by index, 1..32
    sharing: Sharing | None = None  # None: each child gets a copy of its own
    parent: Parent | None = None  # None: this switch is the root
    bits: tuple[int, ...] = ()  # by child, its bits in bitmaps; empty: by index, one of each
    sets: frozenset[int] = frozenset()  # children whose contributions say whose parts they hold
    claims: Claims | None = (
        None  # None: its slots are its own; else they are shared, below `parent`
    )
    is_stream: bool = False  # the last word of a packet is no value (slot_model.add_block)
    strips: tuple[Strips, ...] = ()  # by child: which results it gets without values; empty: none

    @property
    def all_bits(self) -> int:
        """The bitmap of a complete round."""
        return reduce(or_, map(self.bits_of, range(len(self.workers))))

    def bits_of(self, child: int) -> int:
        """Those that a child stands for."""
        return self.bits[child] if self.bits else 1 << child

    def strips_of(self, worker: int) -> Strips:
        """Of the copies that name this one. Who shares a copy may want it."""
        return self.strips[worker] if self.strips and worker != ALL_WORKERS else KEEPS

    @property
    def receivers(self) -> tuple[tuple[int, Attachment], ...]:
        """The copies of a result: the ``worker`` that each names, and where it goes.

        First those to one worker, by rank; then one for each port with workers that share.
        """
        ranks = range(len(self.workers))
        if self.sharing is None:
            return tuple((worker, self.workers[worker]) for worker in ranks)
        alone = [worker for worker in ranks if worker not in self.sharing.workers]
        ports = sorted({self.workers[worker].port for worker in self.sharing.workers})
        return (
            *((worker, self.workers[worker]) for worker in alone),
            *(
                (ALL_WORKERS, Attachment(port, self.sharing.ipv4, self.sharing.udp_port))
                for port in ports
            ),
        )


@dataclass(frozen=True)
class Departure:
    """One copy of a result, to one child or to all behind a port that share it; or a sum, up."""

    to: Attachment
    header: Header
    values: tuple[int, ...]


class Dropped(Exception):  # noqa: N818 (not an error of the caller's)
    """Ends the processing of a packet that is dropped; carries the reason that is counted."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason.name)
        self.reason = reason


class SwitchModel:
    """A switch with ``slots`` physical slots of ``values_per_packet`` int32 values each.

    ``gathers``: the flags that its slots collect; the program of mode pool knows fewer.
    ``expands``: whether it knows of contributions with the last word alone, as mode stream's does.
    ``shapes``: whether it knows of another one than SUM.
    """

    def __init__(
        self,
        slots: int,
        values_per_packet: int,
        *,
        gathers: Flag = STICKY_FLAGS,
        expands: bool = False,
        shapes: bool = True,
    ) -> None:
        self.gathers = gathers
        self.shapes = shapes
        self.values_per_packet = values_per_packet
        self.value_counts = (0, values_per_packet, *((1,) if expands else ()))
        self.slots_total = slots
        self.slots: dict[int, Slot] = defaultdict(lambda: Slot(values=(0,) * values_per_packet))
        """By number; one that nothing has reached yet is as at power-on."""
        self.jobs: dict[int, ModelJob] = {}
        self.owners: dict[int, ModelJob] = {}
        """By epoch: those of them that share slots. They get what is put out of one of theirs."""
        self.now_us = 0
        """32 bits of any clock; whoever has one sets it."""
        self.older: dict[tuple[int, int], ModelJob] = {}
        """By number and the header's epoch: other mappings of jobs that change to another."""
        self.drops: Counter[DropReason] = Counter()
        self.outcomes: Counter[tuple[int, Outcome]] = Counter()  # by job number
        self.evicted: Counter[int] = Counter()
        """By job number: sums that others' packets took up, incomplete."""
        self.members: Counter[int] = Counter()
        """By job number: packets of its neighbours, those with a wrong slot or set among them."""
        self.passed_down: Counter[int] = Counter()
        """By job number: the parent's results that were admitted, replays to nobody among them.

        Those are dropped, too: an admitted packet counts once, in ``outcomes`` or here, whatever
        becomes of it.
        """

    def install(self, job: ModelJob) -> None:
        """Admits the job, in the place of an earlier epoch of it. No slot is touched.

        Raises InvalidInputError: not 1 to 32 children, a rank that shares and is not one of them,
        or slots beyond the switch's.
        """
        if not 1 <= len(job.workers) <= MAX_WORKERS:
            raise InvalidInputError(
                f"job {job.number} has {len(job.workers)} children, 1 to 32 are allowed"
            )
        if job.sharing is not None and not job.sharing.workers <= set(range(len(job.workers))):
            raise InvalidInputError(f"job {job.number} shares results with ranks that it lacks")
        own_slots = job.slots if job.claims is None else job.claims.claimable
        if job.first_slot + own_slots > self.slots_total:
            raise InvalidInputError(f"job {job.number} wants slots beyond {self.slots_total}")
        if job.number in self.jobs:
            self.remove(job.number)
        self.jobs[job.number] = job
        if job.claims is not None:
            self.owners[job.epoch] = job

    def install_beside(self, job: ModelJob) -> None:
        """Admits another mapping of a job; the one it has is in ``older`` until remove_older()."""
        older = self.jobs.pop(job.number)
        self.install(job)
        self.older[job.number, older.epoch % (1 << EPOCH_BITS)] = older

    def remove_older(self, number: int, epoch: int) -> None:
        """Forgets a mapping that the job has changed from."""
        gone = self.older.pop((number, epoch % (1 << EPOCH_BITS)))
        self.owners.pop(gone.epoch, None)

    def remove(self, number: int) -> None:
        """Forgets the job; its slots keep what they hold."""
        self.owners.pop(self.jobs.pop(number).epoch, None)

    def receive(
        self, sender: Attachment, payload: bytes, *, congestion_experienced: bool = False
    ) -> list[Departure]:
        """Returns what leaves because of one UDP payload for the switch's port.

        ``congestion_experienced``: the packet's IP header says CE. A packet that is dropped is
        counted in ``drops`` and changes no slot.
        """
        try:
            header, values = self.read(payload)
            job = self.admit(sender, header)
            if header.kind is Kind.RESULT:
                return list(self.pass_down(job, header, values))
            return self.contribute(job, header, values, congestion_experienced)
        except Dropped as drop:
            self.drops[drop.reason] += 1
            return []

    def read(self, payload: bytes) -> tuple[Header, tuple[int, ...]]:
        """Returns the packet's parts. A length that does not fit is found first. Raises Dropped."""
        if not self.fits(payload):
            raise Dropped(DropReason.MALFORMED)
        try:
            header, values = decode(payload)
        except UnknownVersionError:
            raise Dropped(DropReason.VERSION) from None
        except UnknownKindError:
            raise Dropped(DropReason.KIND) from None
        return header, tuple(values.tolist())

    def fits(self, payload: bytes) -> bool:
        """Whether a packet is as long as it says, and that a length which this build knows."""
        accepted_bytes = [HEADER_BYTES + VALUE_BYTES * count for count in self.value_counts]
        return len(payload) in accepted_bytes and len(payload) == announced_bytes(payload)

    def contribute(
        self, job: ModelJob, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        """Processes a child's contribution. Raises Dropped."""
        flags = (header.flags | (Flag.ECN if congested else NO_FLAGS)) & self.gathers
        header, values = self.expand(header, values)
        said = (header.slot, header.exponent, header.value_type)
        part = Contribution(
            Tag(job.epoch, header.seq),
            self._whose(job, header),
            header.next_exponent,
            flags,
            values,
            header.digest,
            header.check,
            said if values or self._is_shaped(job, header) else (),
            job.is_stream,
        )
        if job.claims is not None:
            return self._share(job, job.claims, header, part)
        slot = self.slots[self.physical_slot(job, header)]
        outcome = slot.contribute(part, job.all_bits)
        self.outcomes[job.number, outcome] += 1
        if outcome in (Outcome.STALE, Outcome.DUPLICATE):
            raise Dropped(DropReason[outcome.name])
        return list(self._distribute(outcome, job, slot, header))

    def expand(self, header: Header, values: tuple[int, ...]) -> tuple[Header, tuple[int, ...]]:
        """A contribution with the last word alone is one of zeros and that word."""
        if header.value_count != 1:
            return header, values
        zeros = (0,) * (self.values_per_packet - 1)
        return replace(header, value_count=self.values_per_packet), (*zeros, *values)

    def _share(
        self, job: ModelJob, claims: Claims, header: Header, part: Contribution
    ) -> list[Departure]:
        """At slots that jobs share, all that leaves goes up. Raises Dropped."""
        is_resend = bool(header.flags & Flag.RESEND) or header.copy > 0
        outcome, held = Outcome.BYPASSED, part.bitmap
        if claims.lane(header.slot) < claims.claimable:
            slot = self.slots[self.physical_slot(job, header)]
            owner = self.owners.get(slot.owner.epoch)
            outcome, held = share(
                *(slot, part, job.all_bits, claims),
                is_resend=is_resend,
                now_us=self.now_us,
                owner_bits=0 if owner is None else owner.all_bits,
            )
        self.outcomes[job.number, outcome] += 1
        if outcome is Outcome.EVICTED:
            assert owner is not None  # else there is nobody to send the sum to
            self.evicted[owner.number] += 1
            leaving = _evicted(owner, header, slot)
            slot.overwrite(part)
            return [leaving]
        if outcome is Outcome.DUPLICATE:
            raise Dropped(DropReason.DUPLICATE)
        if not held:
            return []
        marks = header.flags & Flag.RESEND
        if outcome in ALONE:
            marks |= Flag.COLLISION if outcome is Outcome.COLLISION else NO_FLAGS
            told = replace(header, flags=part.flags | marks)
            return [self._go_up(job, told, part.values, held)]
        told, values = self._with_sum(job, header, slot)
        return [self._go_up(job, replace(told, flags=told.flags | marks), values, held)]

    def admit(self, sender: Attachment, header: Header) -> ModelJob:
        """Returns the job if it is its child's contribution, or the result of its parent."""
        if header.kind not in (Kind.CONTRIBUTION, Kind.RESULT):
            raise Dropped(DropReason.KIND)
        job = self.jobs.get(header.job)
        if job is None or header.epoch != job.epoch % (1 << EPOCH_BITS):
            job = self.older.get((header.job, header.epoch))
        if job is None:
            raise Dropped(DropReason.JOB)
        if header.value_count not in (0, self.values_per_packet) and not job.is_stream:
            raise Dropped(DropReason.MALFORMED)
        if not self._is_neighbour(job, sender, header):
            raise Dropped(DropReason.MEMBER)
        self.members[job.number] += 1
        self.physical_slot(job, header)
        if header.kind is Kind.CONTRIBUTION and not self._whose(job, header):
            raise Dropped(DropReason.MEMBER)
        return job

    @staticmethod
    def _whose(job: ModelJob, header: Header) -> int:
        """Whose parts a contribution holds; 0: it says that it is of others than its sender's."""
        bits = job.bits_of(header.worker)
        if header.worker not in job.sets:
            return bits
        return header.contributors if header.contributors & ~bits == 0 else 0

    @staticmethod
    def _is_neighbour(job: ModelJob, sender: Attachment, header: Header) -> bool:
        if header.kind is Kind.RESULT:
            parent = job.parent
            return parent is not None and (parent.at, parent.worker) == (sender, header.worker)
        return header.worker < len(job.workers) and job.workers[header.worker] == sender

    def physical_slot(self, job: ModelJob, header: Header) -> int:
        """Returns the index into the switch's memory of the packet's slot. Raises Dropped."""
        if header.slot >= job.slots:
            raise Dropped(DropReason.SLOT)
        return job.first_slot + (
            header.slot if job.claims is None else job.claims.lane(header.slot)
        )

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        """The parent's result goes to all children, or to the one that it names. Raises Dropped."""
        receivers = job.receivers
        if job.claims is not None and job.claims.lane(header.slot) < job.claims.claimable:
            slot = self.slots[self.physical_slot(job, header)]
            release(slot, job.epoch, self.now_us)
        self.passed_down[job.number] += 1
        if header.flags & Flag.REPLAY:
            assert job.parent is not None  # nobody else's result is admitted
            way = header.path & job.parent.path_mask
            if way not in job.parent.ways:
                raise Dropped(DropReason.MEMBER)
            child = job.parent.ways.index(way)
            receivers = ((child, job.workers[child]),)
        for worker, to in receivers:
            copy = Departure(to, replace(header, worker=worker), values)
            yield self.stripped(copy, job.strips_of(worker))

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        """The contribution leaves as the result: to all, to its own child, or not at all.

        Where there is a parent, it leaves as this switch's own contribution, in both cases.
        """
        if outcome is Outcome.ABSORBED:
            return
        told, values = self._with_sum(job, header, slot)
        if job.parent is not None:
            yield self._go_up(job, told, values, 1 << job.parent.worker)
            return
        receivers = job.receivers
        if outcome is Outcome.REPLAY:  # never shared: the others have what it has lost
            receivers = ((header.worker, job.workers[header.worker]),)
            told = replace(told, flags=told.flags | Flag.REPLAY)
        for worker, to in receivers:
            result = replace(told, kind=Kind.RESULT, worker=worker, contributors=slot.bitmap)
            yield self.stripped(Departure(to, result, values), job.strips_of(worker))

    def stripped(self, copy: Departure, strips: Strips) -> Departure:
        """As it gets to its receiver: whole, or its header alone."""
        is_whole = len(copy.values) == self.values_per_packet
        if not (is_whole and strips.take(copy.header.path, copy.header.shape)):
            return copy
        return Departure(copy.to, replace(copy.header, value_count=0), ())

    def _is_shaped(self, job: ModelJob, header: Header) -> bool:
        """Whether its round's packets may lack values that its sum has."""
        return self.shapes and header.shape != Shape.SUM and not job.is_stream

    def _with_sum(
        self, job: ModelJob, header: Header, slot: Slot
    ) -> tuple[Header, tuple[int, ...]]:
        """The packet with what the slot has gathered. Where all give values, one that has none is
        of a round that has none."""
        count = self.values_per_packet if self._is_shaped(job, header) else header.value_count
        return replace(_gathered(header, slot), value_count=count), slot.values[:count]

    def _go_up(
        self, job: ModelJob, header: Header, values: tuple[int, ...], held: int
    ) -> Departure:
        """The same of :func:`_up`, as it gets there."""
        assert job.parent is not None
        return self.stripped(_up(job, header, values, held), job.parent.strips)


def _gathered(header: Header, slot: Slot) -> Header:
    """The packet with what the slot has gathered besides the values."""
    return replace(
        header,
        flags=slot.flags,
        next_exponent=slot.next_exponent,
        digest=slot.digest,
        check=slot.check,
    )


def _up(job: ModelJob, header: Header, values: tuple[int, ...], held: int) -> Departure:
    """A contribution of this switch to its parent, of those in ``held``."""
    up = job.parent
    assert up is not None
    told = replace(header, worker=up.worker, contributors=held, level=up.level)
    return Departure(up.at, told, values)


def _evicted(owner: ModelJob, header: Header, slot: Slot) -> Departure:
    """The sum in a slot, in the packet of whoever takes it over. Nobody asks for its result; and
    whose chunk it is the slot does not know, so those get its values, too, who do not want them."""
    where, exponent, value_type = slot.said
    told = replace(
        _gathered(header, slot),
        value_count=len(slot.values),
        flags=slot.flags | Flag.WANTED,
        job=owner.number,
        epoch=owner.epoch % (1 << EPOCH_BITS),
        slot=where,
        seq=slot.owner.seq,
        exponent=exponent,
        value_type=ValueType(value_type),
        path=(1 << PATH_BITS) - 1,
        copy=0,
        shape=Shape.SUM,
    )
    return _up(owner, told, slot.values, slot.bitmap)
