"""A compiled pipeline with a memory of its own: packets in and out one at a time; its state."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from fuzz.programs.interpret import Memory, Sent
from fuzz.programs.model import Group
from ina.switch import native_abi as abi
from ina.switch.c_target.pipeline import const_handle
from ina.switch.ir import Program

_LOW_64 = (1 << 64) - 1


class Device:
    """From :meth:`power_on` on."""

    def __init__(self, table: abi.PipelineStruct, program: Program, split: int) -> None:
        self._table = table
        self._program = program
        self._split = split
        self._state = table.create()
        self._output = abi.OutputBuffer(1 << 16, 64, share_tails=split > 0)

    @classmethod
    @contextmanager
    def power_on(
        cls, table: abi.PipelineStruct, program: Program, groups: tuple[Group, ...], split: int = 0
    ) -> Iterator[Device]:
        """``split`` > 0: frames come in two parts, so many bytes in the first, and copies that
        leave may share their ends."""
        device = cls(table, program, split)
        try:
            for group in groups:
                pairs = itertools.starmap(abi.Replica, group.copies)
                copies = (abi.Replica * len(group.copies))(*pairs)
                table.multicast_set(device._state, group.number, copies, len(group.copies))
            yield device
        finally:
            table.destroy(device._state)

    def process(self, port: int, data: bytes) -> Sent:
        """What one packet makes leave."""
        packet = abi.PacketIn()
        first, rest = data, b""
        if self._split and len(data) > self._split:
            first, rest = data[: self._split], data[self._split :]
            packet.tail = ctypes.cast(ctypes.c_char_p(rest), ctypes.c_void_p)
            packet.tail_length = len(rest)
        packet.data = ctypes.cast(ctypes.c_char_p(first), ctypes.c_void_p)
        packet.length, packet.port, packet.now_ns = len(first), port, 0
        self._output.clear()
        at, out = ctypes.byref(packet), ctypes.byref(self._output.struct)
        done = self._table.process(self._state, at, 1, out)
        assert done == 1, "the output has room for it"
        return self._output.packets()

    def memory(self) -> Memory:
        """All registers (their low 64 bits) and counters."""
        program = self._program
        return Memory(
            {it.name: [self._register(it.index, at) for at in range(it.size)]
             for it in program.registers},
            {it.name: [self._pair(self._table.counter_read, it.index, at)
                       for at in range(it.size)] for it in program.counters},
            {it.name: self._direct(it.index, len(it.entries))
             for it in program.tables if it.has_direct_counter},
        )  # fmt: skip

    def _register(self, number: int, index: int) -> int:
        value = ctypes.c_uint64()
        self._table.register_read(self._state, number, index, ctypes.byref(value))
        return value.value

    def _pair(self, read: object, number: int, at: int) -> tuple[int, int]:
        packets, size = ctypes.c_uint64(), ctypes.c_uint64()
        assert callable(read)
        read(self._state, number, at, ctypes.byref(packets), ctypes.byref(size))
        return packets.value, size.value

    def _direct(self, number: int, entries: int) -> dict[int, tuple[int, int]]:
        read = self._table.direct_counter_read
        found = {at: self._pair(read, number, const_handle(at)) for at in range(entries)}
        found[-1] = self._pair(read, number, -1)
        return {at: pair for at, pair in found.items() if pair != (0, 0)}


def cut(memory: Memory) -> Memory:
    """As a device shows it."""
    found = memory.copy()
    for values in found.registers.values():
        values[:] = [value & _LOW_64 for value in values]
    return found
