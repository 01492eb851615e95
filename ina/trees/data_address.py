"""Where a switch is for workers and other switches: whom packets that it sums are addressed to."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address


@dataclass(frozen=True)
class DataAddress:
    """Of a switch, as other switches see it."""

    address: IPv4Address
    udp_port: int
    mac: int
    """48 bits."""
