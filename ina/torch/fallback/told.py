"""What a group tells of a switch that it lost, and of its return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchLoss:
    """On this rank; the group has gone on over Gloo since, until it returned."""

    reason: str
    unix_s: float
    recovery_s: float
    """From this rank's notice until all that had been under way went over Gloo."""
    chunks_received: int
    """Results that the network had delivered to another rank, but not to this one."""
    operations_resumed: int
    elems_resumed: int
    """Elements of those that no rank had a result of: they were summed over Gloo."""
    returned_unix_s: float = 0.0
    """When the group went back to the network; 0: it has not."""
    away_s: float = 0.0
    """From this rank's notice until the return."""
    gloo_operations: int = 0
    """All_reduces that came in between and went over Gloo."""

    @property
    def is_over(self) -> bool:
        """Whether the group has gone back to the network."""
        return self.returned_unix_s > 0
