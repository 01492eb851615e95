"""RDMA adapters of a ring's workers, as far as reliable connections go: numbers, acknowledgements,
going back. They know of no switch. (InfiniBand Architecture Specification, volume 1, section 9.7.)
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ina.protocol.bth import PSN_BITS, RC_SENDS, Bth, Opcode
from ina.protocol.codec import Header, decode
from ina.protocol.errors import PacketError
from ina.protocol.roce import RoceFrame, decode_frame, encode_frame
from ina.testing.cases.ring import Ring
from ina.testing.device import Device
from ina.testing.frames import PortFrame

_ACK, _NAK_SEQUENCE = 0x1F, 0x60
_PSNS = 1 << PSN_BITS


@dataclass
class RingAdapter:
    """One worker and its adapter. Chunks go and come by their numbers, from 0 on."""

    ring: Ring
    worker: int
    values: Callable[[int, int], list[int]]
    """Of a worker and a chunk."""
    chunks: int
    window: int
    sent: int = 0
    """Chunks up to here have been sent since it went back last."""
    acknowledged: int = 0
    got: list[tuple[Header, list[int]]] = field(default_factory=list)
    """What the host has got, in order."""
    has_complained: bool = False

    @property
    def port(self) -> int:
        """Of the switch, that it is behind."""
        return self.ring.at(self.worker).port

    @property
    def is_done(self) -> bool:
        """Whether it has got all, and need send no more."""
        return self.acknowledged == len(self.got) == self.chunks

    def next_frame(self) -> bytes | None:
        """What it sends next; None: its send queue has nothing more to send."""
        if self.sent >= min(self.acknowledged + self.window, self.chunks):
            return None
        seq = self.sent
        self.sent += 1
        return self.ring.sends(self.worker, seq, self.values(self.worker, seq)).frame

    def time_out(self) -> None:
        """It has heard nothing for long."""
        self.sent = self.acknowledged

    def receive(self, data: bytes) -> bytes | None:
        """A frame comes; returns what it answers."""
        try:
            frame = decode_frame(data)
        except PacketError:  # a wrong ICRC
            return None
        if frame.bth.opcode == Opcode.RC_ACKNOWLEDGE:
            self._hear(frame)
            return None
        if frame.bth.opcode not in RC_SENDS or not self._is_for_it(frame):
            return None
        return self._take(frame)

    def _is_for_it(self, frame: RoceFrame) -> bool:
        before = self.ring.before(self.worker)
        addresses = self.ring.at(before).ipv4, self.ring.at(self.worker).ipv4
        is_queue_pair = frame.bth.dest_qp == self.ring.qp(self.worker, sends=False)
        return is_queue_pair and (frame.src_ipv4, frame.dst_ipv4) == addresses

    def _take(self, frame: RoceFrame) -> bytes | None:
        expected = self.ring.bth(self.ring.before(self.worker), len(self.got)).psn
        ahead = (frame.bth.psn - expected) % _PSNS
        if ahead == 0:
            header, values = decode(frame.payload)
            self.got.append((header, values.tolist()))
            self.has_complained = False
            return self._says(_ACK, expected) if frame.bth.ack_request else None
        if ahead >= _PSNS // 2:  # it has had that
            return self._says(_ACK, (expected - 1) % _PSNS)
        if self.has_complained:
            return None
        self.has_complained = True
        return self._says(_NAK_SEQUENCE, expected)

    def _says(self, syndrome: int, psn: int) -> bytes:
        further = bytes([syndrome]) + len(self.got).to_bytes(3, "big")
        before = self.ring.before(self.worker)
        return encode_frame(self.ring.says(before, Opcode.RC_ACKNOWLEDGE, further, psn))

    def _hear(self, frame: RoceFrame) -> None:
        said: Bth = frame.bth
        first = self.ring.bth(self.worker, 0).psn
        chunk = (said.psn - first) % _PSNS
        if said.dest_qp != self.ring.qp(self.worker, sends=True) or chunk > self.chunks:
            return
        is_nak = frame.payload[0] == _NAK_SEQUENCE
        self.acknowledged = max(self.acknowledged, chunk if is_nak else chunk + 1)
        self.sent = self.acknowledged if is_nak else max(self.sent, self.acknowledged)


@dataclass
class RingNetwork:
    """Adapters around a switch, over cables that lose frames, repeat them and hold them up."""

    device: Device
    adapters: list[RingAdapter]
    rng: random.Random
    loss: float = 0.05
    flying: list[tuple[bool, PortFrame]] = field(default_factory=list)
    """Whether it is on its way to the switch; its port there, and the frame."""
    old: list[PortFrame] = field(default_factory=list)
    """What has been sent to the switch at any time."""

    def run(self, most_steps: int) -> bool:
        """Until all are done; returns whether they are, after so many steps at most."""
        for _ in range(most_steps):
            if all(it.is_done for it in self.adapters):
                return True
            self.step()
        return False

    def step(self) -> None:
        """Something happens."""
        kind = self.rng.random()
        if kind < 0.45 or not self.flying:
            adapter = self.rng.choice(self.adapters)
            data = adapter.next_frame()
            if data is not None:
                self._send(adapter.port, data)
            elif not self.flying or self.rng.random() < 0.05:
                adapter.time_out()
        elif kind < 0.47 and self.old:
            self.flying.append((True, self.rng.choice(self.old)))  # late by any time
        else:
            late = self.rng.random() < 0.1
            at = self.rng.randrange(len(self.flying)) if late else 0
            self._arrive(*self.flying.pop(at))

    def _send(self, port: int, data: bytes) -> None:
        self.old.append((port, data))
        if self.rng.random() >= self.loss:
            self.flying.append((True, (port, data)))

    def _arrive(self, is_up: bool, arrived: PortFrame) -> None:
        port, data = arrived
        if is_up:
            left = self.device.process([arrived])
            kept = [it for it in left if self.rng.random() >= self.loss]
            self.flying += [(False, it) for it in kept]
            return
        for adapter in self.adapters:  # all behind a port hear it, and know their addresses
            if adapter.port == port and (answer := adapter.receive(data)) is not None:
                self._send(port, answer)
