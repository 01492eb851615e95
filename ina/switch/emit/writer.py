"""Lines of C with indentation and the P4 line they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ina.switch.ir.source import Source

_NOT_IN_A_COMMENT = re.compile(r"[\x00-\x1f\x7f\\]")
"""Names of P4 in comments may have these: they end the comment, or take the next line into it."""


class Writer:
    """Collects lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "", source: Source | None = None) -> None:
        """One line; ``source`` becomes a comment at its end."""
        where = str(source) if source else ""
        code, slashes, comment = (f"{text} // {where}" if where else text).partition("//")
        line = f"{code}{slashes}{_NOT_IN_A_COMMENT.sub('?', comment)}"
        self.lines.append(("    " * self._depth + line) if text else "")

    @contextmanager
    def block(self, head: str, tail: str = "}", source: Source | None = None) -> Iterator[None]:
        """``head {`` … ``}``."""
        self.line(f"{head} {{" if head else "{", source)
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    def beside(self) -> Writer:
        """For lines that are to stand here, but behind some that are not known yet."""
        other = Writer()
        other._depth = self._depth
        return other

    def take(self, other: Writer) -> None:
        """All lines of :meth:`beside`."""
        self.lines += other.lines

    def text(self) -> str:
        """Everything."""
        return "\n".join(self.lines) + "\n"
