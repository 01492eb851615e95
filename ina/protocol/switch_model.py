"""The reference model of one switch in mode `pool`: UDP payloads in, results out, by the rules.

It is the oracle that the compiled P4 program is compared with, so it is written for reading: one
method a step, in the order of the P4 controls. Addresses are numbers as they stand in the packet.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ina.errors import InvalidInputError
from ina.protocol.codec import Header, announced_bytes, decode
from ina.protocol.errors import UnknownKindError, UnknownVersionError
from ina.protocol.slot_model import Contribution, Outcome, Slot, Tag
from ina.protocol.spec import (
    ALL_WORKERS,
    HEADER_BYTES,
    MAX_WORKERS,
    NO_FLAGS,
    RESULTS_UDP_PORT,
    VALUE_BYTES,
    DropReason,
    Flag,
    Kind,
)

EPOCH_BITS = 16
"""Bits of the 32-bit epoch that the header carries."""


@dataclass(frozen=True)
class Attachment:
    """Where a worker is: the switch's port towards it, its IPv4 address and its UDP port."""

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
class Job:
    """What the controller installs for a job. ``epoch`` is the whole 32-bit number, from 1."""

    number: int
    epoch: int
    first_slot: int  # physical
    slots: int  # both versions: 2W
    workers: tuple[Attachment, ...]  # by rank, 1..32
    sharing: Sharing | None = None  # None: each worker gets a copy of its own

    @property
    def all_bits(self) -> int:
        """The bitmap of a complete round."""
        return (1 << len(self.workers)) - 1

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
    """One copy of a result: to one worker, or to all behind a port that share it."""

    to: Attachment
    header: Header
    values: tuple[int, ...]


class Dropped(Exception):  # noqa: N818 (not an error of the caller's)
    """Ends the processing of a packet that is dropped; carries the reason that is counted."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason.name)
        self.reason = reason


class SwitchModel:
    """A switch with ``slots`` physical slots of ``values_per_packet`` int32 values each."""

    def __init__(self, slots: int, values_per_packet: int) -> None:
        self.value_counts = (0, values_per_packet)
        self.slots_total = slots
        self.slots: dict[int, Slot] = defaultdict(lambda: Slot(values=(0,) * values_per_packet))
        """By number; one that nothing has reached yet is as at power-on."""
        self.jobs: dict[int, Job] = {}
        self.drops: Counter[DropReason] = Counter()
        self.outcomes: Counter[tuple[int, Outcome]] = Counter()  # by job number

    def install(self, job: Job) -> None:
        """Admits the job, in the place of an earlier epoch of it. No slot is touched.

        Raises InvalidInputError: not 1 to 32 workers, a rank that shares and is not one of them,
        or slots beyond the switch's.
        """
        if not 1 <= len(job.workers) <= MAX_WORKERS:
            raise InvalidInputError(
                f"job {job.number} has {len(job.workers)} workers, 1 to 32 are allowed"
            )
        if job.sharing is not None and not job.sharing.workers <= set(range(len(job.workers))):
            raise InvalidInputError(f"job {job.number} shares results with ranks that it lacks")
        if job.first_slot + job.slots > self.slots_total:
            raise InvalidInputError(f"job {job.number} wants slots beyond {self.slots_total}")
        self.jobs[job.number] = job

    def remove(self, number: int) -> None:
        """Forgets the job; its slots keep what they hold."""
        del self.jobs[number]

    def receive(
        self, sender: Attachment, payload: bytes, *, congestion_experienced: bool = False
    ) -> list[Departure]:
        """Returns what leaves because of one UDP payload for the switch's port.

        ``congestion_experienced``: the packet's IP header says CE. A packet that is dropped is
        counted in ``drops`` and changes nothing else.
        """
        try:
            header, values = self.read(payload)
            return self.contribute(sender, header, values, congestion_experienced)
        except Dropped as drop:
            self.drops[drop.reason] += 1
            return []

    def read(self, payload: bytes) -> tuple[Header, tuple[int, ...]]:
        """Returns the packet's parts. A length that does not fit is found first. Raises Dropped."""
        accepted_bytes = [HEADER_BYTES + VALUE_BYTES * count for count in self.value_counts]
        if len(payload) not in accepted_bytes or len(payload) != announced_bytes(payload):
            raise Dropped(DropReason.MALFORMED)
        try:
            header, values = decode(payload)
        except UnknownVersionError:
            raise Dropped(DropReason.VERSION) from None
        except UnknownKindError:
            raise Dropped(DropReason.KIND) from None
        return header, tuple(values.tolist())

    def contribute(
        self, sender: Attachment, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        """Processes one well-formed packet. Raises Dropped."""
        job = self.admit(sender, header)
        slot = self.slots[self.physical_slot(job, header)]
        flags = header.flags | (Flag.ECN if congested else NO_FLAGS)
        part = Contribution(
            Tag(job.epoch, header.seq),
            1 << header.worker,
            header.next_exponent,
            flags,
            values,
            header.digest,
            header.check,
        )
        outcome = slot.contribute(part, job.all_bits)
        self.outcomes[job.number, outcome] += 1
        if outcome in (Outcome.STALE, Outcome.DUPLICATE):
            raise Dropped(DropReason[outcome.name])
        return list(self._distribute(outcome, job, slot, header))

    def admit(self, sender: Attachment, header: Header) -> Job:
        """Returns the job if the packet is from a worker that the controller admitted to it."""
        if header.kind is not Kind.CONTRIBUTION:
            raise Dropped(DropReason.KIND)
        job = self.jobs.get(header.job)
        if job is None or header.epoch != job.epoch % (1 << EPOCH_BITS):
            raise Dropped(DropReason.JOB)
        if header.worker >= len(job.workers) or job.workers[header.worker] != sender:
            raise Dropped(DropReason.MEMBER)
        return job

    def physical_slot(self, job: Job, header: Header) -> int:
        """Returns the index into the switch's memory of the packet's slot."""
        if header.slot >= job.slots:
            raise Dropped(DropReason.SLOT)
        return job.first_slot + header.slot

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        """The contribution leaves as the result: to all, to its own worker, or not at all."""
        receivers: tuple[tuple[int, Attachment], ...] = ()
        if outcome is Outcome.RESULT:
            receivers = job.receivers
        elif outcome is Outcome.REPLAY:  # never shared: the others have what it has lost
            receivers = ((header.worker, job.workers[header.worker]),)
        for worker, to in receivers:
            result = replace(
                header,
                kind=Kind.RESULT,
                worker=worker,
                flags=slot.flags,
                contributors=slot.bitmap,
                next_exponent=slot.next_exponent,
                digest=slot.digest,
                check=slot.check,
            )
            yield Departure(to, result, slot.values[: header.value_count])
