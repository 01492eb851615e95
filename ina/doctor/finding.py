"""One thing of this machine that ina uses."""

from __future__ import annotations

import shutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing ina uses. ``found`` says which one, or is empty; ``get`` how to get it."""

    name: str
    found: str
    used_for: str
    get: str
    required: bool = False

    @property
    def verdict(self) -> str:
        """ok, MISSING (required) or absent (optional)."""
        return "ok" if self.found else "MISSING" if self.required else "absent"


def tool(*names: str) -> str:
    """Where the first of them is that is on PATH; empty: none is."""
    return next(filter(None, map(shutil.which, names)), "")
