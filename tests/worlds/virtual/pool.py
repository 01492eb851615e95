"""A bench for the pool program: its build in the soft switch, one job, frames in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.p4 import compiled, names
from ina.p4.info import read_p4info
from ina.protocol.codec import Header, decode, encode
from ina.protocol.spec import UDP_PORT, Kind
from ina.switch.match import Exact
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target

VALUES = 64
SWITCH_MAC, SWITCH_ADDR = "02:00:00:00:00:ff", "10.0.0.254"
JOB, EPOCH, JOB_INDEX, GROUP, FIRST_SLOT, SLOTS = 7, 0x0003_0009, 5, 9, 32, 8

Frames = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Worker:
    """A worker of the bench's job: rank 0 is behind switch port 1."""

    rank: int

    @property
    def port(self) -> int:
        return self.rank + 1

    @property
    def mac(self) -> str:
        return f"02:00:00:00:00:{self.rank + 1:02x}"

    @property
    def addr(self) -> str:
        return f"10.0.0.{self.rank + 1}"

    @property
    def udp_port(self) -> int:
        return 4000 + self.rank

    def packet(self, header: Header, values: Sequence[int] = ()) -> Ether:
        """A contribution, to be spoilt by tests; scapy fills lengths and checksums in on build."""
        payload = encode(replace(header, worker=self.rank, value_count=len(values)), values or None)
        return (
            Ether(src=self.mac, dst=SWITCH_MAC)
            / IP(src=self.addr, dst=SWITCH_ADDR, tos=2)
            / UDP(sport=self.udp_port, dport=UDP_PORT)
            / payload
        )

    def frame(self, header: Header, values: Sequence[int] = ()) -> tuple[int, bytes]:
        return self.port, bytes(self.packet(header, values))


@dataclass
class Bench:
    """The program with one job of `size` workers installed."""

    size: int
    pipeline: Pipeline = field(
        default_factory=lambda: default_target().load(compiled(VALUES).bmv2_json)
    )
    receivers: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workers = [Worker(rank) for rank in range(self.size)]
        full = (1 << self.size) - 1
        insert = self.pipeline.insert
        insert(names.OWN_ADDRESSES, [Exact(ip(SWITCH_ADDR))], names.OURS, [])
        for worker in self.workers:
            self.receivers.append(
                insert(
                    names.RECEIVERS,
                    [Exact(JOB), Exact(worker.rank)],
                    names.ADDRESS,
                    [mac(worker.mac), ip(worker.addr), worker.udp_port, 0, 0, 0, 0],
                )
            )
        self.pipeline.set_multicast(GROUP, [(w.port, w.rank + 1) for w in self.workers])
        insert(
            names.JOBS,
            [Exact(JOB), Exact(EPOCH & 0xFFFF)],
            names.ADMIT_JOB,
            [EPOCH, FIRST_SLOT, SLOTS, full, GROUP, JOB_INDEX],
        )
        for worker in self.workers:
            place = [worker.port, ip(worker.addr), worker.udp_port]
            key = [*place, JOB, EPOCH & 0xFFFF, worker.rank, Kind.CONTRIBUTION]
            insert(names.MEMBERS, list(map(Exact, key)), names.ADMIT_MEMBER, [1 << worker.rank])

    def send(self, port: int, frame: bytes | Ether) -> Frames:
        return self.pipeline.process(port, bytes(frame))

    def contribute(self, rank: int, header: Header, values: Sequence[int] = ()) -> Frames:
        return self.pipeline.process(*self.workers[rank].frame(header, values))

    def drops(self) -> dict[int, int]:
        """Packets dropped, by reason, those of zero left out."""
        size = next(
            c.size for c in read_p4info(compiled(VALUES).p4info).counters if c.name == names.DROPS
        )
        found = {i: self.pipeline.counter(names.DROPS, i)[0] for i in range(size)}
        return {reason: packets for reason, packets in found.items() if packets}

    def job_counts(self) -> dict[str, int]:
        """Packets of the job, by counter, those of zero left out."""
        found = {n: self.pipeline.counter(n, JOB_INDEX)[0] for n in names.JOB_COUNTERS}
        return {name: packets for name, packets in found.items() if packets}


def header(seq: int = 0, **changes: Any) -> Header:
    """A contribution of the bench's job; its slot is the one that seq belongs to."""
    base = Header(job=JOB, epoch=EPOCH & 0xFFFF, slot=seq % SLOTS, seq=seq)
    return replace(base, **changes)


def read(frame: bytes) -> tuple[Ether, Header, list[int]]:
    """A result's frame, its INA header and its values."""
    packet = Ether(frame)
    head, values = decode(bytes(packet[UDP].payload))
    return packet, head, values.astype(np.int64).tolist()


def checksum_is_right(frame: bytes) -> bool:
    """Whether the IPv4 header checksum is what scapy computes."""
    packet = Ether(frame)
    said = packet[IP].chksum
    del packet[IP].chksum
    return bool(Ether(bytes(packet))[IP].chksum == said)


def ip(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


def mac(text: str) -> int:
    return int(text.replace(":", ""), 16)
