"""Ports of switches, by number or by name."""

from __future__ import annotations

from collections.abc import Callable

PortRef = int | str
"""A device port, or a front-panel name."""

PortNumber = Callable[[str, PortRef], int]
"""A switch's number of a port, which may be a name on its front panel."""
