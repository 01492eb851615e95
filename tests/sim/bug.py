"""One bug that is put into what ships, to see that ``ina sim fuzz`` finds it."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.p4.builds import builds_of
from ina.p4.names import DEFAULT_MODE, MODES

_COMPILED = "ina/p4/compiled/{}_v1model_{}.json.xz"


@dataclass(frozen=True)
class Bug:
    """``before`` stands once in ``file`` and becomes ``after``; or ``change`` changes the P4."""

    name: str
    file: str = ""
    before: str = ""
    after: str = ""
    change: Callable[[dict[str, Any]], None] | None = None
    mode: str = "pool"
    """Whose P4 program ``change`` changes."""
    slows: bool = False
    """It breaks no promise: resends mend what it does, and jobs take longer."""

    @property
    def seen_in(self) -> str:
        """Only with switches of this mode can it be seen; empty: with any."""
        first = self.name.partition(" ")[0]
        return first if first in MODES and first != DEFAULT_MODE else ""

    @property
    def seen_with(self) -> str:
        """Only with a fault of this kind; empty: with any or none."""
        return "resize" if self.name.startswith("resize ") else ""

    @property
    def is_native(self) -> bool:
        """Whether something has to be compiled."""
        return self.file.startswith("native/")

    def put_into(self, root: Path) -> None:
        """Changes the files below ``root``."""
        if self.change is not None:
            for values in builds_of(self.mode):
                path = root / _COMPILED.format(self.mode, values)
                program = json.loads(lzma.decompress(path.read_bytes()))
                self.change(program)
                path.write_bytes(lzma.compress(json.dumps(program).encode(), preset=0))
            return
        path = root / self.file
        text = path.read_text()
        assert text.count(self.before) == 1, f"{self.file} has changed: write {self.name!r} anew"
        path.write_text(text.replace(self.before, self.after))
