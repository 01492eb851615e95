"""The targets by name, and the one that runs programs where nobody asks for another."""

from __future__ import annotations

from pathlib import Path

from ina.switch.c_target.bare_crc import BareCrc
from ina.switch.c_target.target import CTarget
from ina.switch.target import Target
from ina.switch.xdp.links import XdpMode
from ina.switch.xdp.pin import Pin
from ina.switch.xdp.target import XdpTarget


def bare_crc() -> BareCrc:
    """CRC-32 alone, as the default target compiles it. Raises what building for it does."""
    return BareCrc()


def default_target(cache_dir: Path | None = None) -> Target:
    """``cache_dir``: where images are kept; None: ``$XDG_CACHE_HOME/ina`` or ``~/.cache/ina``."""
    return CTarget(cache_dir)


def xdp_target(
    cache_dir: Path | None = None,
    *,
    at_ports: bool = False,
    mode: XdpMode = XdpMode.native,
    pin: Pin | None = None,
) -> Target:
    """This machine's kernel. ``cache_dir``: as of :func:`default_target`. ``at_ports``: pipelines
    can be attached to interfaces, in ``mode``; ``pin``: and outlive this process."""
    return XdpTarget(cache_dir, at_ports=at_ports, mode=mode, pin=pin)
