"""The threads of this process, by the names that native code gives them."""

from __future__ import annotations

import contextlib
from pathlib import Path


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
