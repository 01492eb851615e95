"""ctypes mirror of pipeline_abi.h: what drives pipelines in C++ knows of one."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

MAX_PORTS = 512
TRAILERS = 2
"""INA_TRAILERS: what is shared may have something behind it."""
OK, EXISTS, NOT_FOUND, FULL, INVALID = 0, -1, -2, -3, -4


class PacketIn(ctypes.Structure):
    """ina_packet_in."""

    _fields_ = (
        ("data", c_void_p),
        ("length", c_uint32),
        ("port", c_uint32),
        ("now_ns", c_uint64),
        ("tail", c_void_p),
        ("tail_length", c_uint32),
    )


class PacketOut(ctypes.Structure):
    """ina_packet_out."""

    _fields_ = (
        ("data", c_void_p),
        ("length", c_uint32),
        ("port", c_uint32),
        ("tail", c_void_p),
        ("tail_length", c_uint32),
        ("trailer_length", c_uint32),
    )


class Output(ctypes.Structure):
    """ina_output."""

    _fields_ = (
        ("arena", c_void_p),
        ("arena_bytes", c_size_t),
        ("arena_used", c_size_t),
        ("packets", POINTER(PacketOut)),
        ("capacity", c_size_t),
        ("count", c_size_t),
        ("depth_pkts", POINTER(c_uint32)),
        ("share_tails", c_uint32),
    )


class NativeEntry(ctypes.Structure):
    """ina_entry."""

    _fields_ = (
        ("key", POINTER(c_uint64)),
        ("mask", POINTER(c_uint64)),
        ("priority", c_int32),
        ("action", c_uint32),
        ("params", POINTER(c_uint64)),
    )


class Replica(ctypes.Structure):
    """ina_replica."""

    _fields_ = (("egress_port", c_uint32), ("rid", c_uint32))


class PipelineStruct(ctypes.Structure):
    """ina_pipeline."""

    _fields_ = (
        ("abi", c_uint32),
        ("source_digest", c_char_p),
        ("create", CFUNCTYPE(c_void_p)),
        ("destroy", CFUNCTYPE(None, c_void_p)),
        ("process", CFUNCTYPE(c_size_t, c_void_p, c_void_p, c_size_t, c_void_p)),
        ("table_insert", CFUNCTYPE(c_int64, c_void_p, c_uint32, c_void_p)),
        ("table_modify", CFUNCTYPE(c_int, c_void_p, c_uint32, c_int64, c_uint32, c_void_p)),
        ("table_delete", CFUNCTYPE(c_int, c_void_p, c_uint32, c_int64)),
        ("table_set_default", CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint32, c_void_p)),
        ("multicast_set", CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p, c_uint32)),
        ("counter_read", CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint64, c_void_p, c_void_p)),
        ("counter_write", CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint64, c_uint64, c_uint64)),
        ("direct_counter_read", CFUNCTYPE(c_int, c_void_p, c_uint32, c_int64, c_void_p, c_void_p)),
        ("direct_counter_write", CFUNCTYPE(c_int, c_void_p, c_uint32, c_int64, c_uint64, c_uint64)),
        ("register_read", CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint64, c_void_p)),
        ("register_write", CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint64, c_uint64)),
        ("clone_set", CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p, c_uint32, c_uint32)),
        ("digest_take", CFUNCTYPE(c_int, c_void_p, c_void_p, c_uint32)),
    )


def at(address: int) -> PipelineStruct:
    """The ``ina_pipeline`` that lies there."""
    found: PipelineStruct = ctypes.cast(address, POINTER(PipelineStruct)).contents
    return found


def to_words(value: int, width_bits: int) -> list[int]:
    """Little-endian 64-bit words."""
    return [(value >> 64 * i) & (2**64 - 1) for i in range((width_bits + 63) // 64)]


def _frame(packet: PacketOut) -> bytes:
    data = ctypes.string_at(packet.data, packet.length)
    if not packet.tail:
        return data
    split = packet.length - packet.trailer_length
    return data[:split] + ctypes.string_at(packet.tail, packet.tail_length) + data[split:]


class OutputBuffer:
    """An ``ina_output`` with the memory behind it."""

    def __init__(
        self, arena_bytes: int = 1 << 20, capacity: int = 1024, *, share_tails: bool = False
    ) -> None:
        self._share_tails = TRAILERS if share_tails else 0
        self._depth = (c_uint32 * MAX_PORTS)()
        self._allocate(arena_bytes, capacity)

    def _allocate(self, arena_bytes: int, capacity: int) -> None:
        self._arena = ctypes.create_string_buffer(arena_bytes)
        self._packets = (PacketOut * capacity)()
        self.struct = Output(
            ctypes.addressof(self._arena), arena_bytes, 0, self._packets, capacity, 0, self._depth,
            self._share_tails,
        )  # fmt: skip

    def grow(self) -> None:
        """Twice the room."""
        self._allocate(2 * self.struct.arena_bytes, 2 * self.struct.capacity)

    def clear(self) -> None:
        """Forget the packets."""
        self.struct.arena_used = self.struct.count = 0

    def set_depths(self, packets: Mapping[int, int]) -> None:
        """What waits at each port; all other queues are empty."""
        ctypes.memset(self._depth, 0, ctypes.sizeof(self._depth))
        for port, depth in packets.items():
            self._depth[port] = depth

    def packets(self) -> list[tuple[int, bytes]]:
        """(port, bytes) of what the last call left."""
        return [(packet.port, _frame(packet)) for packet in self._packets[: self.struct.count]]
