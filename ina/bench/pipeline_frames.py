"""Frames of one job's contributions in memory, a round of all slots after the other, as UDP has
them and as RoCEv2."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ina.protocol.bth import BTH_BYTES, ROCE_UDP_PORT, Bth, Opcode, encode_bth
from ina.protocol.codec import Header, encode
from ina.protocol.icrc import ICRC_BYTES, ICRC_PREFIX, MASKED_OFFSETS, icrc
from ina.protocol.spec import ALL_WORKERS, FIELDS, HEADER_BYTES, RESULTS_UDP_PORT, UDP_PORT
from ina.switch import native_abi as abi

JOB, EPOCH = 1, 1
SWITCH_ADDR = 0x0A0000FF
FRAME_HEADER_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP
CHUNKS = 128
"""Chunks in flight: the job's slots, and results of one batch."""
_ETHERNET_BYTES = 14
_LINE_BYTES = 64
_QUEUE = 0  # of each worker's queue pairs, the only one

Bytes = npt.NDArray[np.uint8]


def addr_of(worker: int) -> int:
    """A worker's IPv4 address."""
    return 0x0A000001 + worker


def mac_of(worker: int) -> int:
    """A worker's Ethernet address."""
    return 0x020000000001 + worker


def port_of(worker: int) -> int:
    """The UDP port that a worker sends from."""
    return RESULTS_UDP_PORT if worker == ALL_WORKERS else 4000 + worker


class Around(Protocol):
    """What frames have around ina's packet, and what rows say of that."""

    udp_port: int
    """To which the switch gets them."""
    behind_bytes: int
    """That stand behind the values."""

    def before(self, worker: int) -> bytes:
        """What a worker's packets have between UDP's header and ina's."""
        ...

    def sealer(self, frames: Bytes, head_bytes: int) -> Callable[[], None]:
        """Of what depends on all the rest of frames, by chunk and worker: writes it. Their values,
        which ``head_bytes`` are before, stay what they are."""
        ...

    def wrong(self, frames: Bytes) -> int:
        """How many of some results, by chunk and copy, are not what they must be around it."""
        ...

    def sender(self, worker: int) -> int:
        """By what members know a sender behind an address and a port."""
        ...

    admits: tuple[int, ...]
    """What a row of members says beside a worker's bit."""

    def receiver(self, worker: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of a row of receivers: the key beside job and worker, and what it says beside the MAC and
        IPv4 addresses."""
        ...


KEEPS = (0, 0, 0, 0)
"""The end of a row of receivers in UDP: no way, and no shapes of which copies lose their values."""


class InUdp:
    """Nothing: UDP's payload is ina's packet."""

    udp_port = UDP_PORT
    behind_bytes = 0
    admits: tuple[int, ...] = ()

    def before(self, worker: int) -> bytes:
        """Nothing."""
        return b""

    def sealer(self, frames: Bytes, head_bytes: int) -> Callable[[], None]:
        """There is nothing."""
        return lambda: None

    def wrong(self, frames: Bytes) -> int:
        """None."""
        return 0

    def sender(self, worker: int) -> int:
        """A UDP port."""
        return port_of(worker)

    def receiver(self, worker: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A UDP port; and that all copies keep their values."""
        return (), (port_of(worker), *KEEPS)


class InRoce:
    """SENDs of one packet: BTH before ina's packet, ICRC behind it."""

    udp_port = ROCE_UDP_PORT
    behind_bytes = ICRC_BYTES
    admits: tuple[int, ...] = (_QUEUE,)

    def before(self, worker: int) -> bytes:
        """BTH, without a number."""
        return encode_bth(Bth(Opcode.UC_SEND_ONLY, dest_qp=self.sender(worker), psn=0))

    def sealer(self, frames: Bytes, head_bytes: int) -> Callable[[], None]:
        """Of PSN and ICRC."""
        return Sends(frames, head_bytes).seal

    def wrong(self, frames: Bytes) -> int:
        """Those with another ICRC than theirs."""
        return sum(_icrc_of(frame) != frame[-ICRC_BYTES:].tobytes() for frame in _each(frames))

    def sender(self, worker: int) -> int:
        """A queue pair of the switch's."""
        return 0x80_0000 | worker

    def receiver(self, worker: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A queue pair of the worker's, messages of one packet."""
        return (_QUEUE,), (0xC000 | worker, 0x01_0000 | worker, 0)


class Sends:
    """PSN and ICRC of frames, whose values stay what they are.

    Nothing but headers is touched, so that what is measured next finds the frames where those of
    UDP would be. A CRC is linear: of two parts, it is that of the first, as zeros change it, and
    that of the second.
    """

    def __init__(self, frames: Bytes, head_bytes: int) -> None:
        """By chunk and worker; ``head_bytes``: before the values."""
        self.frames, self.head_bytes = frames, head_bytes
        values = [frame[head_bytes:-ICRC_BYTES].tobytes() for frame in _each(frames)]
        self._of_values = np.array([_register(it, 0) for it in values], np.uint32)
        zeros = bytes(len(values[0]))
        self._by_zeros = [np.uint32(_register(zeros, 1 << bit)) for bit in range(32)]
        self._table = np.array([_register(bytes([it]), 0) for it in range(256)], np.uint32)

    def seal(self) -> None:
        """PSN from ina's sequence number, ICRC over all."""
        frames, psn_end = self.frames, FRAME_HEADER_BYTES + BTH_BYTES
        seq_end = psn_end + _offset_of("seq") + 4
        frames[:, :, psn_end - 3 : psn_end] = frames[:, :, seq_end - 3 : seq_end]
        heads = frames[:, :, _ETHERNET_BYTES : self.head_bytes].copy()
        heads = heads.reshape(len(self._of_values), -1)
        heads[:, list(MASKED_OFFSETS)] = 0xFF
        crc = np.full(len(heads), _register(ICRC_PREFIX, 0xFFFFFFFF), np.uint32)
        for byte in heads.T:
            crc = crc >> 8 ^ self._table[(crc ^ byte) & 0xFF]
        sealed = self._of_values.copy()
        for bit, column in enumerate(self._by_zeros):
            sealed ^= (crc >> bit & 1) * column
        behind = (~sealed).astype("<u4").view(np.uint8)
        frames[:, :, -ICRC_BYTES:] = behind.reshape(*frames.shape[:2], ICRC_BYTES)


def _register(data: bytes, start: int) -> int:
    """CRC-32's register behind these bytes."""
    return zlib.crc32(data, start ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


AROUND: Mapping[str, Around] = {"udp": InUdp(), "rocev2": InRoce()}
"""By the name that modes have for it (``Mode.framing``)."""


class Batch:
    """``workers`` contributions to each of CHUNKS chunks, packed as frames in one array."""

    def __init__(
        self, values: int, workers: int, rng: np.random.Generator, around: Around = AROUND["udp"]
    ) -> None:
        self.values, self.workers, self.around = values, workers, around
        head = self._head(0)
        self.head_bytes = len(head)
        """Before the values."""
        self.frame_bytes = self.head_bytes + 4 * values + around.behind_bytes
        self.count = CHUNKS * workers
        bound = (2**31 - 1) // workers
        self.gradients = rng.integers(-bound, bound, (CHUNKS, workers, values), dtype=np.int32)
        self.frames = _frames(workers, self.head_bytes, self.frame_bytes)
        for worker in range(workers):
            head = self._head(worker)
            self.frames[:, worker, : self.head_bytes] = np.frombuffer(head, np.uint8)
        slots = np.arange(CHUNKS, dtype=">u2")
        self._field("slot", 2)[:] = slots[:, None].view(np.uint8).reshape(CHUNKS, 1, 2)
        wire = self.gradients.astype(">i4").view(np.uint8)
        self.values_of(self.frames)[:] = wire.reshape(CHUNKS, workers, 4 * values)
        self._seal = around.sealer(self.frames, self.head_bytes)
        self.packets = (abi.PacketIn * self.count)()
        base = self.frames.ctypes.data
        for number, packet in enumerate(self.packets):
            packet.data = base + number * self.frames.strides[1]
            packet.length = self.frame_bytes
            packet.port, packet.now_ns = number % workers + 1, 0

    def values_of(self, frames: Bytes) -> Bytes:
        """The values' bytes of frames that are as long as these."""
        return frames[..., self.head_bytes : self.head_bytes + 4 * self.values]

    def _field(self, name: str, size: int) -> Bytes:
        first = self.head_bytes - HEADER_BYTES + _offset_of(name)
        return self.frames[:, :, first : first + size]

    def _head(self, worker: int) -> bytes:
        header = Header(job=JOB, epoch=EPOCH, worker=worker, value_count=self.values)
        whole = encode(header, np.zeros(self.values, np.int32))
        payload = self.around.before(worker) + whole[:HEADER_BYTES]
        udp_bytes = 8 + len(payload) + 4 * self.values + self.around.behind_bytes
        macs = bytes.fromhex("0200000000ff") + mac_of(worker).to_bytes(6, "big")
        ip = bytearray.fromhex("4502000000004000401100000000000000000000")
        ip[2:4] = (20 + udp_bytes).to_bytes(2, "big")
        ip[12:16], ip[16:20] = addr_of(worker).to_bytes(4, "big"), SWITCH_ADDR.to_bytes(4, "big")
        words = sum(int.from_bytes(ip[i : i + 2], "big") for i in range(0, 20, 2))
        words = (words & 0xFFFF) + (words >> 16)
        ip[10:12] = (0xFFFF - ((words & 0xFFFF) + (words >> 16))).to_bytes(2, "big")
        ports = (port_of(worker), self.around.udp_port)
        udp = b"".join(n.to_bytes(2, "big") for n in (*ports, udp_bytes, 0))
        return macs + b"\x08\x00" + bytes(ip) + udp + payload

    def set_round(self, number: int) -> None:
        """Sequence numbers of the next round."""
        seqs = (number * CHUNKS + np.arange(CHUNKS)).astype(">u4")
        self._field("seq", 4)[:] = seqs[:, None].view(np.uint8).reshape(CHUNKS, 1, 4)
        self._seal()


def _frames(workers: int, head_bytes: int, frame_bytes: int) -> Bytes:
    """Memory for CHUNKS times ``workers`` frames, as the ports lay them: values on a cache line."""
    stride = -(-frame_bytes // _LINE_BYTES) * _LINE_BYTES
    memory = np.zeros(CHUNKS * workers * stride + _LINE_BYTES, np.uint8)
    first = -(memory.ctypes.data + head_bytes) % _LINE_BYTES
    frames = memory[first : first + CHUNKS * workers * stride].reshape(CHUNKS, workers, stride)
    return frames[:, :, :frame_bytes]


def _offset_of(name: str) -> int:
    """Of a field of ina's header, in bytes."""
    bits = 0
    for field in FIELDS:
        if field.name == name:
            break
        bits += field.bits
    return bits // 8


def _each(frames: Bytes) -> Iterator[Bytes]:
    return (frame for of_chunk in frames for frame in of_chunk)


def _icrc_of(frame: Bytes) -> bytes:
    return icrc(frame[_ETHERNET_BYTES:-ICRC_BYTES].tobytes())
