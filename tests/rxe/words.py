"""What machines say, and how long it may take them."""

from __future__ import annotations

import json
from typing import Any

from tests.worlds.machines.machine import Machine

BOOT_S, SUM_S = 400.0, 240.0


def said(machine: Machine, word: str, timeout_s: float) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(machine.line(word, timeout_s))
    return told
