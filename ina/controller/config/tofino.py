"""The part of the configuration that only a Tofino has: ports, pipes, mirror sessions.

A *device port* is the chip's number, 0..511: the pipe in the upper two of its nine bits, the port
within the pipe in the lower seven. A *front-panel name* is ``CONNECTOR/CHANNEL``, as ``1/0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ina.fabric.ports import PortRef

PIPE_SHIFT = 7
"""A device port's pipe is what is above its lowest seven bits."""
MAX_DEVICE_PORT = 511
MAX_MIRROR_SESSION = 1015
"""Stratum's limit too: the sessions above are the chip's own."""

Problem = tuple[str, str]
"""Key, and what is wrong with it."""

_SPEEDS: Mapping[str, tuple[str, ...]] = {
    "tofino": ("10G", "25G", "40G", "50G", "100G"),
    "tofino2": ("10G", "25G", "40G", "50G", "100G", "200G", "400G"),
}
_FECS: Mapping[str, tuple[str, ...]] = {
    "10G": ("none", "fc"),
    "25G": ("none", "fc", "rs"),
    "40G": ("none", "fc"),
    "50G": ("none", "fc", "rs"),
    "100G": ("none", "rs"),
    "200G": ("rs",),
    "400G": ("rs",),
}
"""Forward error correction that a speed can have: of 25G a lane and more, Reed-Solomon."""
RECIRCULATION: Mapping[str, int] = {"tofino": 68}
"""The program's recirculation port within each pipe (``tofino/ports.p4``); Tofino 2 has none."""
_FRONT_PANEL = re.compile(r"[1-9]\d{0,2}/[0-7]")
_PROGRAM = re.compile(r"[A-Za-z_]\w*")


class PortConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A port to set up."""

    port: PortRef
    """Device port or front-panel name."""
    speed: Literal["10G", "25G", "40G", "50G", "100G", "200G", "400G"]
    fec: Literal["none", "fc", "rs"] = "none"
    """Forward error correction: both ends of a cable must have the same."""
    autoneg: Literal["default", "on", "off"] = "default"
    """Auto-negotiation; ``default``: what the SDE thinks right for the cable."""
    lanes: Literal[0, 1, 2, 4, 8] = 0
    """Lanes of the connector that it takes; 0: what suits its speed."""
    loopback: bool = False
    """What leaves comes in again, for trials without a cable. No host can be behind it."""
    mtu: Annotated[int, Meta(ge=1500, le=10240)] = 10240
    """Longest frame in bytes, in both directions."""


class PipesConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the chip has."""

    count: Literal[1, 2, 4] = 4
    """Pipes. Registers are a pipe's own: all workers of a job must be in the same one."""


class MirrorConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A mirror session: copies of packets, for whoever debugs."""

    session: Annotated[int, Meta(ge=1, le=MAX_MIRROR_SESSION)]
    port: PortRef
    """Where the copies go."""
    direction: Literal["ingress", "egress", "both"] = "both"
    max_bytes: Annotated[int, Meta(ge=64, le=16384)] = 16384
    """A longer copy is cut."""


def pipe_of(port: int) -> int:
    """The pipe that a device port belongs to."""
    return port >> PIPE_SHIFT


def is_front_panel(port: PortRef) -> bool:
    """Whether it is a front-panel name, and a possible one."""
    return isinstance(port, str) and _FRONT_PANEL.fullmatch(port) is not None


def program_problem(name: str) -> str:
    """Why this cannot be a program's name; empty: it can."""
    if not name or _PROGRAM.fullmatch(name):
        return ""
    return f"{name!r} is not a program's name: the SDE takes letters, digits and _"


def port_problems(
    target: str,
    pipes: PipesConfig,
    ports: tuple[PortConfig, ...],
    mirrors: tuple[MirrorConfig, ...],
) -> Iterator[Problem]:
    """What is wrong with ``switch.port`` and ``switch.mirror`` of a Tofino."""
    seen: set[PortRef] = set()
    for index, port in enumerate(ports):
        key = f"switch.port[{index}]"
        yield from place_problems(f"{key}.port", port.port, target, pipes)
        if port.port in seen:
            yield f"{key}.port", f"{port.port} is listed twice"
        seen.add(port.port)
        if port.speed not in _SPEEDS[target]:
            known = ", ".join(_SPEEDS[target])
            yield f"{key}.speed", f"{port.speed}: a {target} has {known}"
        if port.fec not in _FECS[port.speed]:
            known = " or ".join(_FECS[port.speed])
            yield f"{key}.fec", f"{port.fec} at {port.speed}: that can have {known}"
        if port.lanes == 8 and target == "tofino":
            yield f"{key}.lanes", "8: a connector of Tofino has 4"
    sessions: set[int] = set()
    for index, mirror in enumerate(mirrors):
        key = f"switch.mirror[{index}]"
        yield from place_problems(f"{key}.port", mirror.port, target, pipes)
        if mirror.session in sessions:
            yield f"{key}.session", f"{mirror.session} is listed twice"
        sessions.add(mirror.session)


def place_problems(key: str, port: PortRef, target: str, pipes: PipesConfig) -> Iterator[Problem]:
    """What is wrong with a port's number or name on this chip."""
    if isinstance(port, str):
        if not is_front_panel(port):
            yield key, f"{port!r} is neither a device port nor CONNECTOR/CHANNEL, as 1/0"
        return
    last = (pipes.count << PIPE_SHIFT) - 1
    if not 0 <= port <= last:
        yield (
            key,
            (
                f"{port} is in pipe {pipe_of(port)}: this chip has pipes 0 to {pipes.count - 1},"
                f" ports 0 to {last} (switch.pipes.count)"
            ),
        )
    elif port & ((1 << PIPE_SHIFT) - 1) == RECIRCULATION.get(target):
        yield key, f"{port} is the recirculation port of pipe {pipe_of(port)}"


def host_place_problems(
    key: str, port: PortRef, ports: tuple[PortConfig, ...]
) -> Iterator[Problem]:
    """Whether a host can be behind this port as ``switch.port`` sets it up."""
    same_kind = [other for other in ports if isinstance(other.port, str) == isinstance(port, str)]
    for other in same_kind:
        if other.port == port and other.loopback:
            yield key, f"{port} is a loopback port: what a host behind it sends is not seen"
    if ports and len(same_kind) == len(ports) and port not in {other.port for other in ports}:
        yield key, f"{port} is not set up: no [[switch.port]] names it"
