"""Emulated networks, as ina writes them (TOML)."""

from __future__ import annotations

from fuzz.doors.memory_file import memory_file
from fuzz.doors.promise import promise, refusals
from ina.emulate.errors import TopologyError
from ina.emulate.toml_file import load_toml


def enter(data: bytes) -> None:
    """Reads it. Nothing is built."""
    with memory_file(data) as path, refusals(TopologyError):
        topology = load_toml(path)
        promise(topology.links, "a network has a link")
