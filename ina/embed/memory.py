"""What a host has room for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ina.embed.errors import TooLittleMemoryError
from ina.embed.sharding import VALUE_BYTES
from ina.extension.embed import Optimizer, Placement, TableSpec

_MEMINFO = Path("/proc/meminfo")
_NUMBER_BYTES = 4  # of a row, for where its gradient is


def needed_bytes(specs: Sequence[TableSpec], hosts: int, host: int, optimizer: Optimizer) -> int:
    """Of this host's rows, and what the optimiser keeps of them."""
    needed = 0
    for spec in specs:
        a_row = (spec.dim + optimizer.state_values(spec.dim)) * VALUE_BYTES + _NUMBER_BYTES
        needed += Placement(spec, hosts).rows_of(host) * a_row
    return needed


def available_bytes() -> int | None:
    """Of memory, as the kernel says; None: it does not."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", _MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def check_memory(specs: Sequence[TableSpec], hosts: int, host: int, optimizer: Optimizer) -> None:
    """Raises TooLittleMemoryError: this host's rows do not fit."""
    needed, available = needed_bytes(specs, hosts, host, optimizer), available_bytes()
    if available is not None and needed > available:
        raise TooLittleMemoryError(
            f"host {host}: its rows need {needed / 2**20:,.0f} MiB, and"
            f" {available / 2**20:,.0f} MiB are available"
        )
