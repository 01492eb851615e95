"""Ports of switches, by number or by name."""

from __future__ import annotations

from collections.abc import Callable

from ina.fabric.errors import FabricError

PortRef = int | str
"""A device port, or a front-panel name."""

PortNumber = Callable[[str, PortRef], int]
"""A switch's number of a port, which may be a name on its front panel."""


def plain_number(switch: str, port: PortRef) -> int:
    """Where every port is a number already. Raises :class:`FabricError`: it is a name."""
    if isinstance(port, int):
        return port
    raise FabricError(f"port {port} of switch {switch!r} is a name: its number is not known")
