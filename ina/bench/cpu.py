"""What a thread, or all of the machine, has cost so far, as the scheduler counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ina.errors import InaError

SWITCH_THREAD = "ina-port-loop"
"""Of a soft switch, that moves packets."""
_COMM_BYTES = 15
"""Of a thread's name, at most."""


def thread(name: str, process: int | str = "self") -> int:
    """Id of a process's thread of that name. Raises InaError: it has none."""
    for entry in Path(f"/proc/{process}/task").iterdir():
        if (entry / "comm").read_text().strip() == name:
            return int(entry.name)
    raise InaError(f"process {process} has no thread {name}")


def polls(interfaces: Iterable[str]) -> list[int]:
    """Kernel threads that poll these interfaces, of any network namespace: ``napi/``NAME``-``N."""
    wanted = tuple(f"napi/{name}-"[:_COMM_BYTES] for name in interfaces)
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/comm")
        if _text(path).startswith(wanted)
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""


def cpu_ns(thread: int, process: int | str = "self") -> int:
    """CPU time of that thread."""
    return int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[0])


def machine_s() -> tuple[float, float]:
    """Seconds that this machine's cores were busy, and all that there were, of them together."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    # user, nice, system, idle, iowait, irq, softirq, steal
    ticks = [int(word) for word in words[1:9]]
    second = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / second, sum(ticks) / second
