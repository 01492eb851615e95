"""The threads of this process, by the names that native code gives them."""

from __future__ import annotations

import contextlib
from pathlib import Path


def threads_named(name: str) -> list[int]:
    """Of this process, by their ids. The kernel keeps 15 characters of a name."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            if (task / "comm").read_text().strip() == name[:15]:
                found.append(int(task.name))
    return found
