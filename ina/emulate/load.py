"""Reads a topology file of either kind."""

from __future__ import annotations

from pathlib import Path

from ina.emulate.errors import TopologyError
from ina.emulate.toml_file import load_toml
from ina.emulate.topology import Topology
from ina.emulate.tutorial_json import load_json


def load_topology(path: Path, *, ignore_runtime: bool = False) -> Topology:
    """``.toml``: ina's format; ``.json``: that of the p4lang tutorials.

    ``ignore_runtime``: run ina's programs also where the file names others. Raises
    :class:`TopologyError` with the file and the key.
    """
    match path.suffix:
        case ".toml":
            return load_toml(path, ignore_runtime=ignore_runtime)
        case ".json":
            return load_json(path, ignore_runtime=ignore_runtime)
    raise TopologyError(f"{path}: want .toml or .json (the p4lang tutorials' topology.json)")
