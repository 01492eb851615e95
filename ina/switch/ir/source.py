"""Where in the P4 source something was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Source:
    """A place in a P4 file; ``line`` 0 means unknown: then the parser ``state`` may be known."""

    file: str = ""
    line: int = 0
    fragment: str = ""
    state: str = ""

    def __str__(self) -> str:
        if self.line:
            return f"{PurePath(self.file).name}:{self.line}"
        return f"parser state {self.state!r}" if self.state else ""


UNKNOWN = Source()
