"""Emulated networks, as the p4lang tutorials write them (``topology.json``)."""

from __future__ import annotations

from fuzz.doors.memory_file import memory_file
from fuzz.doors.promise import promise, refusals
from ina.emulate.errors import TopologyError
from ina.emulate.tutorial_json import load_json


def enter(data: bytes) -> None:
    """Reads it. Nothing is built; tables that it names are not read."""
    with memory_file(data) as path, refusals(TopologyError):
        topology = load_json(path, ignore_runtime=True)
        promise(topology.links, "a network has a link")
