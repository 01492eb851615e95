"""Reads the ``topology.json`` of the p4lang tutorials: what it says, and whether it has its form.

Links are ``[end, end]``, then, as there, a latency and a bandwidth in Mbit/s. An end is a host's
name, or a switch's with a port: ``s1-p1``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ina import document
from ina.errors import InvalidInputError

SWITCH_END = re.compile(r"(\w+)-p(\d+)")
"""A switch's port: its groups are the name and the number."""
_Table = TypeVar("_Table")


class TopologyError(InvalidInputError):
    """A topology file is wrong; the message has the file, the key and the problem."""


class HostTable(msgspec.Struct):
    """What the file says of a host; other keys do not matter."""

    ip: str
    """10.0.1.1/24"""
    mac: str = ""
    commands: list[str] = []


class SwitchTable(msgspec.Struct):
    """What it says of a switch."""

    runtime_json: str = ""


class _File(msgspec.Struct):
    hosts: dict[str, dict[str, Any]]
    switches: dict[str, dict[str, Any]]
    links: list[list[Any]]


@dataclass(frozen=True)
class TopologyJson:
    """A whole file, as it was written."""

    hosts: Mapping[str, HostTable]
    switches: Mapping[str, SwitchTable]
    links: tuple[tuple[Any, ...], ...]
    """Of two to four parts each."""


def decoded(path: Path) -> Any:
    """What a file of JSON says. Raises :class:`TopologyError`: it cannot be read, or is no JSON."""
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TopologyError(f"{path}: not JSON: {error}") from None


def read_topology_json(path: Path) -> TopologyJson:
    """Raises :class:`TopologyError` with the file and the key."""
    file = convert(path, "", decoded(path), _File)
    for index, link in enumerate(file.links):
        if not 2 <= len(link) <= 4:
            raise TopologyError(
                f"{path}: links[{index}]: {len(link)} parts: want 2 ends, latency, bandwidth"
            )
    return TopologyJson(
        {name: convert(path, f"hosts.{name}", it, HostTable) for name, it in file.hosts.items()},
        {
            name: convert(path, f"switches.{name}", it, SwitchTable)
            for name, it in file.switches.items()
        },
        tuple(tuple(link) for link in file.links),
    )


def convert(path: Path, key: str, table: Mapping[str, Any], form: type[_Table]) -> _Table:
    """``table`` as ``form``. Raises :class:`TopologyError` that names the key under ``key``."""
    try:
        return document.convert(table, form, key)
    except document.DocumentError as error:
        raise TopologyError(f"{path}: {error}") from None
