"""Captures of exchanges with the reference switch: what a capture beside it would hold."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, wrpcap

from ina.protocol.codec import Header, encode
from ina.protocol.slot_model import Outcome
from ina.protocol.spec import NO_FLAGS, UDP_PORT, Flag, index_bits, path_of
from ina.protocol.switch_model import Attachment, Departure, ModelJob, Sharing, SwitchModel

JOB, SLOTS, VALUES = 9, 4, 2
SWITCH = "10.0.0.254"
GROUP = "239.1.2.3"
BEGIN_S = 1_700_000_000.0
STEP_S = 0.000_125


def attachment(worker: int, port: int | None = None) -> Attachment:
    return Attachment(
        worker + 1 if port is None else port, int(IPv4Address("10.0.0.1")) + worker, 1024 + worker
    )


def frame(src: str, src_port: int, dst: str, dst_port: int, payload: bytes, tos: int = 0) -> Ether:
    return (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src=src, dst=dst, tos=tos)
        / UDP(sport=src_port, dport=dst_port)
        / payload
    )


@dataclass
class Exchange:
    """A job of ``workers`` with a reference switch; ``frames`` is what passes by.

    ``listening``: workers that share results; ``ports``: of the switch, by worker.
    """

    workers: int
    epoch: int = 5
    listening: frozenset[int] = frozenset()
    ports: tuple[int, ...] = ()
    frames: list[Ether] = field(default_factory=list)
    outcomes: list[Outcome | None] = field(default_factory=list)  # of each contribution; None: JOB
    model: SwitchModel = field(default_factory=lambda: SwitchModel(64, VALUES))

    def __post_init__(self) -> None:
        self.restart(self.epoch)

    def restart(self, epoch: int) -> None:
        self.epoch = epoch
        sharing = Sharing(self.listening, int(IPv4Address(GROUP))) if self.listening else None
        members = tuple(self.at(worker) for worker in range(self.workers))
        self.model.install(ModelJob(JOB, epoch, 8, SLOTS, members, sharing))

    def at(self, worker: int) -> Attachment:
        return attachment(worker, self.ports[worker] if self.ports else None)

    def contribute(
        self, worker: int, seq: int, *, epoch: int | None = None, flags: Flag = NO_FLAGS
    ) -> list[Departure]:
        """The contribution passes, then what the switch answers; returns the answers."""
        header = Header(
            flags=flags,
            job=JOB,
            epoch=(self.epoch if epoch is None else epoch) % 0x10000,
            worker=worker,
            slot=seq % SLOTS,
            value_count=VALUES,
            seq=seq,
            contributors=1 << worker,
            path=path_of([worker], [index_bits(self.workers, is_root=True)]),
            copy=1 if flags & Flag.RESEND else 0,
        )
        payload, sender = encode(header, [worker + 1, -worker]), self.at(worker)
        ipv4 = str(IPv4Address(sender.ipv4))
        self.add(frame(ipv4, sender.udp_port, SWITCH, UDP_PORT, payload))
        before = self.model.outcomes.copy()
        departures = self.model.receive(sender, payload)
        news = self.model.outcomes - before
        self.outcomes.append(next((outcome for _, outcome in news), None))
        for departure in departures:
            to = str(IPv4Address(departure.to.ipv4))
            payload = encode(departure.header, departure.values)
            self.add(frame(SWITCH, UDP_PORT, to, departure.to.udp_port, payload))
        return departures

    def add(self, packet: Ether) -> None:
        packet.time = BEGIN_S + len(self.frames) * STEP_S
        self.frames.append(packet)

    def write(self, path: Path) -> Path:
        wrpcap(str(path), self.frames)
        return path

    def write_pcapng(self, path: Path) -> Path:
        writer = PcapNgWriter(str(path))
        for packet in self.frames:
            writer.write(packet)
        writer.close()
        return path


def one_round(workers: int = 3) -> Exchange:
    """A round with a lost contribution, a replay, a late copy and the next round's begin."""
    exchange = Exchange(workers)
    exchange.contribute(0, 1)
    exchange.contribute(1, 1)
    exchange.contribute(0, 1, flags=Flag.RESEND)  # in already
    exchange.contribute(2, 1)  # complete
    exchange.contribute(1, 1, flags=Flag.RESEND)  # replay
    exchange.contribute(0, 1 + SLOTS)
    exchange.contribute(2, 1)  # stale
    return exchange


def shared_round() -> Exchange:
    """0 and 1 share results behind port 1, 2 does not listen; 1 loses its copy."""
    exchange = Exchange(3, listening=frozenset({0, 1}), ports=(1, 1, 1))
    exchange.contribute(2, 1)
    exchange.contribute(2, 1, flags=Flag.RESEND)  # in already
    exchange.contribute(0, 1)
    exchange.contribute(1, 1)  # complete
    exchange.contribute(1, 1, flags=Flag.RESEND)  # replay
    return exchange


def random_exchange(seed: int) -> Exchange:
    rng = random.Random(seed)
    exchange = Exchange(rng.randint(1, 5), rng.choice([1, 0xFFFF, 0x1FFFF]))
    highest = 0
    exchange.contribute(0, 0)  # a capture tells an epoch only by a packet of it
    for _ in range(80):
        if rng.random() < 0.03:
            exchange.restart(exchange.epoch + 1)
            exchange.contribute(0, 0)
            highest = 0
        highest += rng.random() < 0.3
        seq = max(0, highest - rng.choice([0, 0, 1, 2, 4, 8]))
        epoch = exchange.epoch - (rng.random() < 0.05)
        exchange.contribute(rng.randrange(exchange.workers), seq, epoch=epoch)
    return exchange
