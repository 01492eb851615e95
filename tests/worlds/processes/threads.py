"""The threads of this process, by the names that native code gives them."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import struct
from pathlib import Path

_SCHED_ATTR = struct.Struct("=IIQiIQQQ")
"""size, policy, flags, nice, priority, runtime, deadline, period; nanoseconds."""
SHORT_SLICE_NS = 100_000
"""What a thread asks for that packets wait for."""


class NewThreads:
    """Those that start from here on. Others of the same name may be an earlier test's."""

    def __init__(self) -> None:
        self._before = set(_threads())

    def only(self, name: str) -> int:
        """The id of the one with this name. The kernel keeps 15 characters of a name."""
        found = [
            thread
            for thread, its_name in _threads().items()
            if thread not in self._before and its_name == name[:15]
        ]
        assert len(found) == 1, f"{len(found)} new threads {name}"
        return found[0]


def _threads() -> dict[int, str]:
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            found[int(task.name)] = (task / "comm").read_text().strip()
    return found


def slice_ns(thread: int) -> int:
    """The time slice that a thread of this process has asked for; before Linux 6.12 always 0."""
    attributes = ctypes.create_string_buffer(_SCHED_ATTR.size)
    number = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, thread, attributes, len(attributes), 0) != 0:
        raise OSError(ctypes.get_errno(), f"sched_getattr of thread {thread}")
    return int(_SCHED_ATTR.unpack(attributes.raw)[5])


def takes_slices() -> bool:
    """Whether this kernel takes a thread's time slice."""
    major, minor = map(int, platform.release().split(".")[:2])
    return (major, minor) >= (6, 12)
