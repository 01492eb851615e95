"""A few of the kernel's BPF calls: load a program for packets, and let an interface run it.

Programs are written here as instructions (RFC 9669), so that no compiler and no library is needed.
A program stays with its interface as long as its :class:`Attached` is open (TCX, Linux 6.6).
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ina import netns
from ina.errors import UnavailableError

_SYSCALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_MAP_CREATE, _MAP_LOOKUP, _PROG_LOAD, _LINK_CREATE = 0, 1, 5, 28
_ARRAY, _SCHED_CLS, _TCX_EGRESS = 2, 3, 47
_KEY_BYTES, _WORD_BYTES = 4, 8
_LOG_BYTES = 1 << 16

# Classes and codes of instructions.
LOAD, STORE, ATOMIC = 0x61, 0x7B, 0xDB
LOAD_BYTE, LOAD_64, STORE_32_NOW = 0x71, 0x79, 0x62
MOVE, ADD, SUBTRACT = 0xBF, 0x0F, 0x1F
MOVE_NOW, ADD_NOW, MULTIPLY_NOW, SHIFT_RIGHT_NOW = 0xB7, 0x07, 0x27, 0x77
IF_GREATER, IF_AT_LEAST, IF_EQUAL_NOW, IF_NOT_EQUAL_NOW, GO = 0x2D, 0x3D, 0x15, 0x55, 0x05
CALL, EXIT = 0x85, 0x95
_LOAD_WIDE, _MAP = 0x18, 1


class BpfError(UnavailableError):
    """The kernel refuses a program, or an interface it; the message says why."""


@dataclass(frozen=True)
class Step:
    """One instruction. ``to``: where a jump leads, the name of a :class:`Label`."""

    code: int
    target: int = 0
    source: int = 0
    offset: int = 0
    value: int = 0
    to: str = ""


@dataclass(frozen=True)
class Label:
    """A place between instructions."""

    name: str


@dataclass(frozen=True)
class Wide:
    """Loads 64 bits: a number, or, for ``is_map``, the address of the map with that descriptor."""

    target: int
    value: int
    is_map: bool = False


def assembled(program: Sequence[Step | Label | Wide]) -> bytes:
    """The kernel's form of it."""
    places: dict[str, int] = {}
    at = 0
    for one in program:
        if isinstance(one, Label):
            places[one.name] = at
        else:
            at += 2 if isinstance(one, Wide) else 1
    code, at = b"", 0
    for one in program:
        if isinstance(one, Wide):
            low, high = one.value & 0xFFFFFFFF, one.value >> 32
            kind = _MAP if one.is_map else 0
            code += struct.pack("<BBhI", _LOAD_WIDE, one.target | kind << 4, 0, low)
            code += struct.pack("<BBhI", 0, 0, 0, high)
            at += 2
        elif isinstance(one, Step):
            at += 1
            offset = places[one.to] - at if one.to else one.offset
            registers = one.target | one.source << 4
            code += struct.pack("<BBhi", one.code, registers, offset, one.value)
    return code


class Words:
    """So many 64-bit numbers that a program and this process share. A context manager."""

    def __init__(self, count: int) -> None:
        """All are 0. Raises :class:`BpfError`."""
        self._count = count
        attributes = struct.pack("<IIIII", _ARRAY, _KEY_BYTES, count * _WORD_BYTES, 1, 0)
        self.descriptor = _call(_MAP_CREATE, attributes, "numbers to share")

    def read(self) -> tuple[int, ...]:
        """As they are now. Raises :class:`BpfError`."""
        key = ctypes.create_string_buffer(_KEY_BYTES)
        value = ctypes.create_string_buffer(self._count * _WORD_BYTES)
        addresses = ctypes.addressof(key), ctypes.addressof(value)
        attributes = struct.pack("<IIQQQ", self.descriptor, 0, *addresses, 0)
        _call(_MAP_LOOKUP, attributes, "numbers that are shared")
        return struct.unpack(f"<{self._count}Q", value.raw)

    def close(self) -> None:
        """Lets go of them; a program that uses them keeps them."""
        os.close(self.descriptor)


class Attached:
    """A program that sees each packet before it comes to an interface's queue."""

    def __init__(self, end: netns.End, name: str, code: bytes) -> None:
        """``name``: of the program, 15 letters. Raises :class:`BpfError`, NetnsError."""
        program = _load(name, code)
        try:
            with netns.inside(end.space):
                try:
                    index = socket.if_nametoindex(end.interface)
                except OSError:
                    raise BpfError(f"{name}: no such interface {end.interface}") from None
                attributes = struct.pack("<IIIIIIQ", program, index, _TCX_EGRESS, 0, 0, 0, 0)
                self._link = _call(_LINK_CREATE, attributes, f"{name} at {end.interface}")
        finally:
            os.close(program)

    def close(self) -> None:
        """The interface does without it. Idempotent."""
        link, self._link = self._link, -1
        if link >= 0:
            os.close(link)


def _load(name: str, code: bytes) -> int:
    lines = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"Apache-2.0")  # no helper here asks for the GPL
    log = ctypes.create_string_buffer(_LOG_BYTES)
    attributes = struct.pack(
        "<IIQQIIQII16sII",
        *(_SCHED_CLS, len(code) // 8, ctypes.addressof(lines), ctypes.addressof(licence)),
        *(1, _LOG_BYTES, ctypes.addressof(log), 0, 0, name.encode(), 0, _TCX_EGRESS),
    )
    return _call(_PROG_LOAD, attributes, f"program {name}", log)


def _call(
    command: int, attributes: bytes, what: str, log: ctypes.Array[ctypes.c_char] | None = None
) -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise BpfError(f"{what}: the call bpf has no known number on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    found = libc.syscall(number, command, buffer, len(attributes))
    if found < 0:
        why = os.strerror(ctypes.get_errno())
        said = "" if log is None else log.value.decode("utf-8", "replace").strip()
        raise BpfError(f"{what}: {why}" + (f": {said.splitlines()[-2:]}" if said else ""))
    return int(found)
