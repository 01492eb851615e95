"""What happened when a switch was lost, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchLoss:
    """On this rank; the group has gone on over Gloo since."""

    reason: str
    unix_s: float
    recovery_s: float
    """From this rank's notice until all that had been under way went over Gloo."""
    chunks_received: int
    """Results that the network had delivered to another rank, but not to this one."""
    operations_resumed: int
    elems_resumed: int
    """Elements of those that no rank had a result of: they were summed over Gloo."""
