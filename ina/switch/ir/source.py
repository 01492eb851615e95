"""Where in the P4 source something was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Source:
    """A place in a P4 file; ``line`` 0 means unknown."""

    file: str = ""
    line: int = 0
    fragment: str = ""

    def __str__(self) -> str:
        if not self.line:
            return ""
        return f"{PurePath(self.file).name}:{self.line}"


UNKNOWN = Source()
