"""Who appears in the cases: a job's workers, what they send, what they must be sent back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ina.p4 import names
from ina.protocol.codec import Header, encode
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import HEADER_BYTES, NO_FLAGS, UDP_PORT, DropReason, Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Attachment, ModelJob, Sharing
from ina.tables.values import AnyItem, Counter, CounterRef
from ina.testing.case import Arrival
from ina.testing.frames import RESULT_TTL, SWITCH_IPV4, SWITCH_MAC, Frame, PortFrame
from ina.testing.state import job_state, receiver_mac, worker_mac

STRANGER_PORT = 33
"""A port behind which no worker is."""
FIRST_SHARED_IPV4 = 0xEF81_0100
"""239.129.1.0: job n's workers listen to the n-th address from here. The second byte's highest
bit is set: it does not fit into the MAC address, which has 23 bits of the 32."""


@dataclass(frozen=True)
class Team:
    """A job and the packets of its workers. Worker 0 is behind port 1, unless said otherwise."""

    job: ModelJob
    values: int
    """int32 values in a packet, as the program is built."""

    @property
    def state(self) -> tuple[AnyItem, ...]:
        """What the controller installs."""
        return job_state(self.job)

    @property
    def ranks(self) -> range:
        """The workers' numbers."""
        return range(len(self.job.workers))

    def shared_at(self, port: int) -> Attachment:
        """Where the copy goes that workers behind a port share."""
        assert self.job.sharing is not None
        return Attachment(port, self.job.sharing.ipv4, self.job.sharing.udp_port)

    def header(self, worker: int, seq: int, count: int, /, **fields: Any) -> Header:
        """A contribution's header; ``fields`` change it, by the names of the wire format."""
        header = Header(
            job=self.job.number,
            epoch=self.job.epoch % (1 << EPOCH_BITS),
            worker=worker,
            slot=seq % self.job.slots,
            value_count=count,
            seq=seq,
            contributors=1 << worker,
        )
        return replace(header, **fields)

    def frame(
        self, worker: int, seq: int, values: Sequence[int] | None = None, /, **fields: Any
    ) -> Frame:
        """A contribution as the worker's host sends it; no values: exponents only."""
        numbers = [] if values is None else list(values)
        payload = encode(self.header(worker, seq, len(numbers)), numbers)
        payload = with_fields(payload, **fields)
        at = self.job.workers[worker]
        return Frame(payload, at.ipv4, at.udp_port, src_mac=worker_mac(at))

    def sends(
        self, worker: int, seq: int, values: Sequence[int] | None = None, /, **fields: Any
    ) -> Arrival:
        """The worker's contribution arrives; nothing leaves, unless :meth:`Arrival.gives` says."""
        frame = self.frame(worker, seq, values, **fields)
        return Arrival(self.job.workers[worker].port, frame.build())

    def result(
        self,
        worker: int,
        seq: int,
        values: Sequence[int] | None = None,
        tos: int | None = None,
        **fields: Any,
    ) -> PortFrame:
        """The sum as it must reach a worker; ``fields`` are what the slot has gathered."""
        return self.copy(worker, self.job.workers[worker], seq, values, tos, **fields)

    def replay(
        self, worker: int, seq: int, values: Sequence[int] | None = None, **fields: Any
    ) -> PortFrame:
        """The finished sum as it must come back to the one that asks again."""
        flags = fields.pop("flags", NO_FLAGS) | Flag.REPLAY
        return self.result(worker, seq, values, flags=flags, **fields)

    def copy(
        self,
        worker: int,
        at: Attachment,
        seq: int,
        values: Sequence[int] | None = None,
        tos: int | None = None,
        **fields: Any,
    ) -> PortFrame:
        """The sum with this ``worker`` in it, as it must leave towards ``at``."""
        numbers = [] if values is None else list(values)
        all_of_them = {"kind": Kind.RESULT, "contributors": self.job.all_bits, **fields}
        header = self.header(worker, seq, len(numbers), **all_of_them)
        frame = Frame(
            encode(header, numbers),
            src_ipv4=SWITCH_IPV4,
            src_udp=UDP_PORT,
            dst_mac=receiver_mac(at),
            src_mac=SWITCH_MAC,
            dst_ipv4=at.ipv4,
            dst_udp=at.udp_port,
            ttl=RESULT_TTL,
            udp_checksum=0,
        )
        return at.port, (frame if tos is None else replace(frame, tos=tos)).build()

    def results(
        self, seq: int, values: Sequence[int] | None = None, **fields: Any
    ) -> tuple[PortFrame, ...]:
        """The sum to all workers: to each its copy, and to those that share one, theirs."""
        return tuple(
            self.copy(worker, at, seq, values, **fields) for worker, at in self.job.receivers
        )

    def ones(self) -> list[int]:
        """A packet full of 1."""
        return [1] * self.values

    def numbers(self, start: int) -> list[int]:
        """A packet of values that differ, of both signs."""
        return [(start * 7919 + 104729 * i) % 20011 - 10005 for i in range(self.values)]


def team(
    values: int,
    size: int = 3,
    *,
    number: int = 1,
    epoch: int = 0x0003_0009,
    first_slot: int = 32,
    slots: int = 8,
    ports: Sequence[int] | None = None,
    listening: Iterable[int] = (),
) -> Team:
    """A job of ``size`` workers, one behind each of the ports 1.., or behind ``ports``.

    ``listening``: the workers that share results, at a multicast address of the job's own.
    """
    at = range(1, size + 1) if ports is None else ports
    workers = tuple(
        Attachment(port, 0x0A00_0001 + (number << 8) + rank, 4000 + rank)
        for rank, port in enumerate(at)
    )
    listeners = frozenset(listening)
    sharing = Sharing(listeners, FIRST_SHARED_IPV4 + number) if listeners else None
    return Team(ModelJob(number, epoch, first_slot, slots, workers, sharing), values)


def with_fields(payload: bytes, **fields: Any) -> bytes:
    """The payload with header fields changed to any number that fits, also wrong ones."""
    whole = int.from_bytes(payload[:HEADER_BYTES], "big")
    for field in LAYOUT:
        if field.name in fields:
            whole &= ~(field.mask << field.header_shift)
            whole |= int(fields[field.name]) << field.header_shift
    return whole.to_bytes(HEADER_BYTES, "big") + payload[HEADER_BYTES:]


def total(*parts: Sequence[int]) -> list[int]:
    """The sum of packets, value by value, wrapping as int32."""
    with np.errstate(over="ignore"):
        sums = np.sum(np.array(parts, np.int64), axis=0).astype(np.int32)
    return [int(value) for value in sums]


def tally(
    team: Team, *, drops: Mapping[DropReason, int] | None = None, **packets: int
) -> dict[CounterRef, int]:
    """Counters of a job by their short names (contributions, results, replays, duplicates, stale,
    passed_down, ecn_marks, unaddressed; flushes, collisions, bypassed, late, missed, evictions),
    and drops by reason. A stale packet or a duplicate is a drop, too."""
    names_of = {it.rpartition("job_")[2]: it for it in names.ALL_JOB_COUNTERS}
    counts: dict[CounterRef, int] = {
        Counter(names_of[name], team.job.number): count for name, count in packets.items()
    }
    reasons = {
        DropReason.STALE: packets.get("stale", 0),
        DropReason.DUPLICATE: packets.get("duplicates", 0),
        **(drops or {}),
    }
    counts.update({Counter(names.DROPS, reason): count for reason, count in reasons.items()})
    return counts
