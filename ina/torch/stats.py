"""What a group has done so far, as plain data."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class GroupStats:
    """Counters of one process group in this process, since the group was made."""

    job: str
    rank: int
    world_size: int
    controller: str
    network_all_reduces: int
    """Tensors that were summed by the network."""
    network_elems: int
    network_bytes: int
    """Size of those tensors in their own dtype."""
    fallbacks: int
    """Tensors of an all_reduce that went through Gloo."""
    fallback_reasons: dict[str, int]
    """``"all_reduce MAX of float32"`` to the number of them."""
    other_collectives: dict[str, int]
    """Collectives that always go through Gloo, by name."""
    session: dict[str, Any]
    """Packets, bytes and retransmissions of this worker: see :class:`ina.host.SessionStats`."""
    switch: dict[str, Any] | None
    """Counters of the embedded switch, in the process that runs it; else None."""

    def write(self, path: Path) -> None:
        """Write as JSON; raises OSError."""
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n")
