"""What a thread has cost so far, as the scheduler counts it."""

from __future__ import annotations

from pathlib import Path

from ina.errors import InaError

SWITCH_THREAD = "ina-port-loop"
"""Of a soft switch, that moves packets."""


def thread(name: str, process: int | str = "self") -> int:
    """Id of a process's thread of that name. Raises InaError: it has none."""
    for entry in Path(f"/proc/{process}/task").iterdir():
        if (entry / "comm").read_text().strip() == name:
            return int(entry.name)
    raise InaError(f"process {process} has no thread {name}")


def cpu_ns(thread: int, process: int | str = "self") -> int:
    """CPU time of that thread."""
    return int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[0])
