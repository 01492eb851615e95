"""The few calls of libbpf that are needed, by ctypes: objects, maps, and runs of one packet."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ina.errors import UnavailableError
from ina.switch.xdp import capabilities

LIBRARY = "libbpf.so.1"
_LOG_BYTES = 1 << 24
NO_ENTRY, EXISTS, FULL = 2, 17, 7
"""errno: ENOENT, EEXIST, E2BIG."""
_NOT_PERMITTED = 1
_LIVE_FRAMES = 1 << 1
_DEVMAP = 14
LOOPBACK = 1
"""Index of the interface that frames of this process come by."""
CREATE, ANY = 1, 0
"""What an update of a map may do."""


class XdpError(UnavailableError):
    """The kernel, or libbpf, refuses; the message says what."""


class RefusedError(XdpError):
    """The kernel's verifier refuses a program; ``log`` is what it says."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


_ON_SAMPLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _TestRun(ctypes.Structure):
    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_void_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


class _Context(ctypes.Structure):
    """struct xdp_md."""

    _fields_ = tuple(
        (name, ctypes.c_uint32)
        for name in ("data", "data_end", "data_meta", "ifindex", "queue", "egress_ifindex")
    )


@functools.cache
def library() -> ctypes.CDLL:
    """Raises :class:`XdpError`: it is not installed."""
    try:
        found = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError:
        raise XdpError(f"no {LIBRARY}: apt install libbpf1") from None
    for name in ("bpf_object__open_file", "bpf_object__next_map", "bpf_object__next_program"):
        getattr(found, name).restype = ctypes.c_void_p
    found.bpf_object__open_file.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    found.bpf_object__next_map.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    found.bpf_object__next_program.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    for name in ("bpf_object__load", "bpf_object__close", "bpf_map__fd", "bpf_program__fd"):
        getattr(found, name).argtypes = (ctypes.c_void_p,)
    for name in ("bpf_map__name", "bpf_program__name"):
        getattr(found, name).restype = ctypes.c_char_p
        getattr(found, name).argtypes = (ctypes.c_void_p,)
    for name in ("bpf_map__key_size", "bpf_map__value_size"):
        getattr(found, name).restype = ctypes.c_uint32
        getattr(found, name).argtypes = (ctypes.c_void_p,)
    found.bpf_program__set_log_buf.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
    found.bpf_program__set_log_level.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    found.bpf_program__set_autoload.argtypes = (ctypes.c_void_p, ctypes.c_bool)
    found.ring_buffer__new.restype = ctypes.c_void_p
    found.ring_buffer__poll.argtypes = (ctypes.c_void_p, ctypes.c_int)
    found.ring_buffer__free.argtypes = (ctypes.c_void_p,)
    found.libbpf_set_print(None)
    return found


def why_not() -> str:
    """Why this process can load no program; empty: it may."""
    try:
        lib = library()
    except XdpError as error:
        return str(error)
    if lacks := capabilities.missing():
        return f"needs {', '.join(lacks)}: run it as root, or give it {capabilities.needed()}"
    array, bytes_of_a_word = 2, 4
    found = lib.bpf_map_create(array, b"ina_probe", bytes_of_a_word, bytes_of_a_word, 1, None)
    if found >= 0:
        os.close(found)
        return ""
    if -found == _NOT_PERMITTED:
        return "needs root of the machine: that of a container or a user namespace may not do it"
    return f"this kernel has no BPF maps: {os.strerror(-found)}"


@dataclass(frozen=True)
class Map:
    """One that is loaded. ``value_bytes``: of one processor's, where each has its own."""

    name: str
    descriptor: int
    key_bytes: int
    value_bytes: int

    def read(self, key: bytes, room_bytes: int = 0) -> bytes | None:
        """None: there is no such key. ``room_bytes``: of all processors' values together."""
        value = ctypes.create_string_buffer(room_bytes or self.value_bytes)
        code = library().bpf_map_lookup_elem(self.descriptor, key, value)
        if code == -NO_ENTRY:
            return None
        self._check(code)
        return value.raw

    def write(self, key: bytes, value: bytes, flags: int = ANY) -> int:
        """Returns 0, or the errno: EXISTS of CREATE, FULL. Raises :class:`XdpError` of others."""
        code = -library().bpf_map_update_elem(self.descriptor, key, value, ctypes.c_uint64(flags))
        if code not in (0, EXISTS, FULL):
            self._check(-code)
        return int(code)

    def delete(self, key: bytes) -> None:
        """Raises :class:`XdpError`."""
        self._check(library().bpf_map_delete_elem(self.descriptor, key))

    def keys(self) -> list[bytes]:
        """Of one that nobody changes meanwhile. Raises :class:`XdpError`."""
        found: list[bytes] = []
        key = ctypes.create_string_buffer(self.key_bytes)
        while True:
            before = found[-1] if found else None
            code = library().bpf_map_get_next_key(self.descriptor, before, key)
            if code == -NO_ENTRY:
                return found
            self._check(code)
            found.append(key.raw)

    def _check(self, code: int) -> None:
        if code:
            raise XdpError(f"map {self.name}: {os.strerror(-code)}")


@dataclass(frozen=True)
class Run:
    """What a program made of a packet."""

    verdict: int
    data: bytes
    meta: bytes
    """What stands in front of it."""
    duration_ns: int


def copies_map(room: int) -> Map:
    """A map for the copies of a group. Raises :class:`XdpError`."""
    descriptor = library().bpf_map_create(_DEVMAP, b"ina_copies", 4, 8, room, None)
    if descriptor < 0:
        raise XdpError(f"a map for copies: {os.strerror(-descriptor)}")
    return Map("ina_copies", descriptor, 4, 8)


class Ring:
    """Frames that programs put there."""

    def __init__(self, ring: Map) -> None:
        """Raises :class:`XdpError`."""
        self._frames: deque[bytes] = deque()
        self._callback = _ON_SAMPLE(self._take)  # as long as the ring
        handle = library().ring_buffer__new(ring.descriptor, self._callback, None, None)
        if not handle:
            raise XdpError(f"map {ring.name}: {os.strerror(ctypes.get_errno())}")
        self._handle: int | None = handle

    def next(self, timeout_ms: int) -> bytes | None:
        """The oldest; None: none came in time."""
        if not self._frames and self._handle:
            library().ring_buffer__poll(self._handle, timeout_ms)
        return self._frames.popleft() if self._frames else None

    def close(self) -> None:
        """Idempotent."""
        handle, self._handle = self._handle, None
        if handle:
            library().ring_buffer__free(handle)

    def _take(self, _context: int | None, data: int, size: int) -> int:
        self._frames.append(ctypes.string_at(data, size))
        return 0


class Programs(ABC):
    """Programs and maps that are in the kernel, until :meth:`close` at the least."""

    def __init__(self, programs: Mapping[str, int], maps: Iterable[Map]) -> None:
        """``programs``: descriptors, by name; below 0: it is not there."""
        self.maps = {found.name: found for found in maps}
        self.programs = {name: found for name, found in programs.items() if found >= 0}

    def program(self, name: str) -> int:
        """Its descriptor."""
        return int(self.programs[name])

    def run(self, program: str, data: bytes, *, meta: bytes = b"", repeat: int = 1) -> Run:
        """One packet through a program. ``data``: 14 bytes or more. Raises :class:`XdpError`."""
        room = ctypes.create_string_buffer(len(data) + len(meta) + 4096)
        whole = meta + data
        given = _Context(data=len(meta), data_end=len(whole), ifindex=LOOPBACK)
        found = _Context()
        ask = _TestRun(
            sz=ctypes.sizeof(_TestRun),
            data_in=ctypes.cast(ctypes.c_char_p(whole), ctypes.c_void_p),
            data_out=ctypes.cast(room, ctypes.c_void_p),
            data_size_in=len(whole),
            data_size_out=len(room),
            ctx_in=ctypes.cast(ctypes.byref(given), ctypes.c_void_p),
            ctx_out=ctypes.cast(ctypes.byref(found), ctypes.c_void_p),
            ctx_size_in=ctypes.sizeof(given),
            ctx_size_out=ctypes.sizeof(found),
            repeat=repeat,
        )
        code = library().bpf_prog_test_run_opts(self.programs[program], ctypes.byref(ask))
        if code:
            raise XdpError(f"program {program}: {os.strerror(-code)}")
        out = room.raw[: ask.data_size_out]
        at = found.data - found.data_meta
        return Run(ask.retval, out[at:], out[:at], ask.duration)

    def send(self, program: str, data: bytes, *, count: int = 1, batch: int = 1) -> None:
        """Frames through a program, as if they had come by the loopback: where that sends them,
        they go, a batch at a time. Raises :class:`XdpError`."""
        given = _Context(data_end=len(data), ifindex=LOOPBACK)
        ask = _TestRun(
            sz=ctypes.sizeof(_TestRun),
            data_in=ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p),
            data_size_in=len(data),
            ctx_in=ctypes.cast(ctypes.byref(given), ctypes.c_void_p),
            ctx_size_in=ctypes.sizeof(given),
            repeat=count,
            flags=_LIVE_FRAMES,
            batch_size=batch,
        )
        code = library().bpf_prog_test_run_opts(self.programs[program], ctypes.byref(ask))
        if code:
            raise XdpError(f"program {program}: {os.strerror(-code)}")

    @abstractmethod
    def close(self) -> None:
        """Idempotent."""


class Object(Programs):
    """Of one file."""

    def __init__(self, path: Path, without: Callable[[str], bool] = lambda _: False) -> None:
        """``without``: of a program's name, whether it stays out of the kernel.

        Raises :class:`XdpError`, :class:`RefusedError`.
        """
        lib = library()
        self._handle: int | None = _opened(path)
        programs = _each(self._handle, "bpf_object__next_program")
        log = (ctypes.c_char * _LOG_BYTES).from_buffer(mmap.mmap(-1, _LOG_BYTES))
        for one in programs:
            lib.bpf_program__set_log_buf(
                one, log, _LOG_BYTES
            )  # if it is refused, it is tried again
            if without(lib.bpf_program__name(one).decode()):
                lib.bpf_program__set_autoload(one, False)
        code = lib.bpf_object__load(self._handle)
        if code:
            lib.bpf_object__close(self._handle)
            self._handle = None
            raise _why_refused(path, -code, log.value)
        named = {lib.bpf_program__name(it).decode(): lib.bpf_program__fd(it) for it in programs}
        super().__init__(named, _maps(self._handle))

    def close(self) -> None:
        """See :meth:`Programs.close`."""
        handle, self._handle = self._handle, None
        if handle:
            library().bpf_object__close(handle)


def _maps(handle: int) -> list[Map]:
    lib = library()
    return [
        Map(
            lib.bpf_map__name(one).decode(),
            lib.bpf_map__fd(one),
            lib.bpf_map__key_size(one),
            lib.bpf_map__value_size(one),
        )
        for one in _each(handle, "bpf_object__next_map")
    ]


def _opened(path: Path) -> int:
    handle = library().bpf_object__open_file(str(path).encode(), None)
    if not handle:
        raise XdpError(f"{path}: {os.strerror(ctypes.get_errno())}")
    return int(handle)


def _each(handle: int | None, function: str) -> list[int]:
    found: list[int] = []
    step = getattr(library(), function)
    one = step(handle, None)
    while one:
        found.append(one)
        one = step(handle, one)
    return found


def _why_refused(path: Path, number: int, log: bytes) -> XdpError:
    """``log``: the verifier's, of the last program that it looked at."""
    said = log.decode("utf-8", "replace").strip()
    if not said:
        return XdpError(f"the kernel refuses {path.name}: {os.strerror(number)}")
    lines = [line for line in said.splitlines() if not line.startswith("processed ")]
    return RefusedError(f"the kernel's verifier refuses {path.name}: {lines[-1]}", said)
