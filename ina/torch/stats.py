"""What a group has done so far: plain data, and a table when it is printed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.torch.stats_view import as_table


@dataclass(frozen=True)
class GroupStats:
    """Counters of one process group in this process, since the group was made."""

    job: str
    rank: int
    world_size: int
    controller: str
    network_all_reduces: int
    """Tensors of an all_reduce that the network summed."""
    network_reduce_scatters: int
    """Tensors of a reduce_scatter that the network summed."""
    network_elems: int
    """Elements that were summed; of a reduce_scatter, those of its input."""
    network_bytes: int
    """Size of those elements in their own dtype."""
    fallbacks: int
    """Tensors of an all_reduce or a reduce_scatter that went through Gloo."""
    fallback_reasons: dict[str, int]
    """``"all_reduce MAX of float32"`` to the number of them."""
    other_collectives: dict[str, int]
    """Collectives that the network does not do, by name; through Gloo on the CPU."""
    session: dict[str, Any]
    """Packets, bytes and retransmissions of this worker: see :class:`ina.host.SessionStats`."""
    switch: dict[str, Any] | None
    """Counters of the embedded switch, in the process that runs it; else None."""
    switch_loss: dict[str, Any] | None
    """How the group came to go on over Gloo: see :class:`ina.torch.fallback.SwitchLoss`."""

    def __str__(self) -> str:
        return as_table(self)

    def write(self, path: Path) -> None:
        """Write as JSON; raises OSError."""
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n")
