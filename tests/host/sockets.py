"""What the kernel is asked, refuses and is told, and who waits for it."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ina.protocol.codec import Header, encode
from ina.protocol.spec import Kind

DEADLINE_S = 30.0
_LOAD, _EQUAL, _GIVE = 0x20, 0x15, 0x06  # of classic BPF
# Of Linux: not all in Python's socket module.
SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF, IP_RECVERR, SO_BINDTODEVICE = 26, 51, 11, 25


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def foreign_packets(count: int) -> list[bytes]:
    """Results of another job, one for each lane; a worker that gets them counts them."""
    header = Header(kind=Kind.RESULT, job=99, epoch=1, value_count=0, contributors=1)
    empty = np.zeros(0, np.int32)
    return [encode(replace(header, seq=i), empty) for i in range(count)]


def forbid_setsockopt(level: int, option: int) -> None:
    """Make this thread's kernel refuse one option, as an old one or a sandbox does (seccomp(2))."""
    number = {"x86_64": 54, "aarch64": 208}.get(platform.machine())
    if number is None:
        pytest.skip(f"the number of setsockopt() on {platform.machine()} is not known here")
    # struct seccomp_data: nr at 0; args from 16, 8 bytes each, here little endian.
    _refuse(
        (_LOAD, 0, 0, 0), (_EQUAL, 0, 5, number),
        (_LOAD, 0, 0, 24), (_EQUAL, 0, 3, level),
        (_LOAD, 0, 0, 32), (_EQUAL, 0, 1, option),
    )  # fmt: skip


def forbid_call(number: int) -> None:
    """Make this thread's kernel, and that of threads it begins, refuse a whole system call."""
    _refuse((_LOAD, 0, 0, 0), (_EQUAL, 0, 1, number))


def _refuse(*what: tuple[int, int, int, int]) -> None:
    """What goes through all of it with EPERM, the rest not at all."""
    code = [*what, (_GIVE, 0, 0, 0x00050000 | errno.EPERM), (_GIVE, 0, 0, 0x7FFF0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    described = struct.pack("HxxxxxxP", len(code), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((38, 1, 0, 0, 0), (22, 2, described)):  # no new privileges; the filter
        if libc.prctl(*arguments) != 0:
            pytest.skip(f"no seccomp filter here: errno {ctypes.get_errno()}")


def in_a_thread(work: Callable[[], Any]) -> None:
    """Run it where what it does to its thread ends with it."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(2 * DEADLINE_S)
    assert not thread.is_alive()
    if raised:
        raise raised[0]
