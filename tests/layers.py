"""The shape of the house: which package may import which, and who does not keep to it."""

from __future__ import annotations

import functools
from pathlib import Path

from tests.lines import ROOT
from tests.sources import imports

PACKAGE = ROOT / "ina"

# What each package may import of ina, besides itself. Only downwards, and `controller` and `host`
# know each other through `rpc` alone.
BELOW = {
    "": set(),
    "errors": set(),
    "units": set(),
    "netns": {"errors"},
    "files": {"errors"},
    "native_sources": set(),
    "cache_dir": {"errors"},
    "children": set(),
    "document": {"errors"},
    "extension": {"errors", "native_sources"},
    "log": {"errors"},
    "protocol": {"errors"},
    "rpc": {"errors", "log", "protocol"},
    "p4": {"cache_dir", "errors", "files", "protocol"},
    "fabric": {"document", "errors"},
    "trees": {"errors", "protocol", "p4", "fabric"},
    "tables": {"errors", "rpc", "p4"},
    "modes": {"errors", "protocol", "p4", "tables", "trees"},
    "pcap": {"errors", "protocol"},
    "metrics": {"errors"},
    "congestion": {"document", "errors", "extension"},
    "switch": {
        *("cache_dir", "errors", "extension", "protocol", "rpc", "p4", "metrics", "tables"),
    },
    "host": {
        *("congestion", "errors", "extension", "log", "modes", "protocol", "rpc", "p4", "metrics"),
    },
    "embed": {"errors", "extension", "metrics", "protocol"},
    "infer": {"controller", "document", "errors", "extension", "host", "protocol", "rpc"},
    "controller": {
        *("congestion", "errors", "log", "protocol", "rpc", "p4", "metrics", "switch"),
        *("document", "fabric", "modes", "tables", "trees", "units"),
    },
    "doctor": {
        "cache_dir",
        "errors",
        "extension",
        "units",
        "protocol",
        "rpc",
        "p4",
        "metrics",
        "switch",
        "host",
        "controller",
        "fabric",
        "tables",
        "trees",
    },
    "testing": {
        "modes",
        "errors",
        "extension",
        "netns",
        "protocol",
        "rpc",
        "p4",
        "metrics",
        "switch",
        "controller",
        "fabric",
        "tables",
        "trees",
    },
    "emulate": {
        "errors",
        "netns",
        "protocol",
        "rpc",
        "p4",
        "switch",
        "controller",
        "fabric",
        "tables",
        "trees",
    },
    "torch": {
        "congestion",
        "embed",
        "extension",
        "modes",
        "errors",
        "log",
        "units",
        "protocol",
        "rpc",
        "p4",
        "metrics",
        "switch",
        "host",
        "controller",
        "fabric",
        "tables",
        "trees",
    },
    "sim": {
        *("congestion", "errors", "extension", "pcap", "protocol", "rpc", "p4", "switch", "host"),
        *("children", "controller", "document", "fabric", "modes", "tables", "testing", "torch"),
        "trees",
    },
    "bench": {
        *("embed", "errors", "protocol", "rpc", "p4", "metrics", "switch", "host", "controller"),
        *("emulate", "fabric", "files", "modes", "netns", "sim", "tables", "testing", "torch"),
        *("extension", "infer", "trees", "units"),
    },
    "cli": {
        *("errors", "log", "protocol", "rpc", "p4", "metrics", "switch", "host", "controller"),
        *(
            "bench",
            "doctor",
            "embed",
            "emulate",
            "files",
            "pcap",
            "sim",
            "testing",
            "torch",
            "units",
        ),
        *("cache_dir", "congestion", "document", "fabric", "infer", "modes", "tables", "trees"),
    },
    "__main__": {"cli"},
}
# The same inside of packages: their rooms, and the files that stand before them.
ROOMS = {
    "controller": {
        "": set(),
        "errors": set(),
        "faults": set(),
        "surroundings": set(),
        "retry": {"errors"},
        "config": {"errors"},
        "memory": {"errors", "config"},
        "routing": {"errors", "config"},
        "change": set(),
        "job": {"change"},
        "switches": {"errors", "faults", "config", "memory", "change", "job"},
        "store": {"errors", "config", "memory", "change", "job"},
        "jobs": {
            *("errors", "faults", "surroundings", "retry", "config", "memory"),
            *("change", "job", "switches", "store", "routing"),
        },
        "slots": {"errors", "config", "retry", "memory", "change", "job", "jobs"},
        "placing": {"errors", "config", "memory", "routing", "job", "jobs", "slots"},
        "watch": {"errors", "change", "job", "switches", "jobs"},
        "windows": {"errors", "config", "change", "job", "jobs"},
        "service": {
            *("errors", "retry", "config", "memory", "job", "switches", "store", "jobs", "watch"),
            *("surroundings", "change", "windows", "routing", "slots", "placing"),
        },
        "app": {"errors", "config", "store", "service"},
        "embedded": {"errors", "config", "switches", "app"},
    },
    "switch": {
        "": set(),
        "errors": set(),
        "ir": {"errors"},
        "passes": {"errors", "ir"},
        "emit": {"errors", "ir", "passes"},
        "emit_c": {"errors", "ir", "passes", "emit"},
        "emit_ebpf": {"errors", "ir", "passes", "emit"},
        "match": {"errors", "ir"},
        "native_abi": set(),
        "queues": set(),
        "pipeline": {"errors", "ir", "match", "queues"},
        "keeper": set(),
        "target": {"errors", "ir", "keeper", "passes", "pipeline", "port_set", "ports"},
        "c_target": {
            *("errors", "ir", "passes", "emit_c", "match", "native_abi", "pipeline", "target"),
            *("native_ports", "port_set", "ports"),
        },
        "xdp": {
            *("errors", "ir", "passes", "emit", "emit_ebpf", "match", "pipeline", "target"),
            *("keeper", "port_set", "ports", "stats"),
        },
        "targets": {"c_target", "target", "xdp"},
        "graph": {"ir"},
        "ports": set(),
        "stats": set(),
        "metrics": {"stats"},
        "p4runtime": {"errors", "ir", "keeper", "match", "pipeline", "target"},
        "port_set": {"pipeline", "ports", "stats"},
        "native_ports": {"pipeline", "port_set", "ports", "stats"},
        "server": {"p4runtime", "pipeline", "port_set", "ports", "stats", "target", "targets"},
        "two_mappings": set(),
        "job_switch": {"ports", "server", "two_mappings"},
        "host_node": {"job_switch", "ports"},
        "aggregator": {"job_switch", "ports"},
    },
}
ROOMS["cli"] = {
    "": set(),
    "common": set(),
    "log_options": set(),
    "lazy": {"common", "log_options"},
    **{
        noun: {"common"}
        for noun in (
            "demo",
            "emulate",
            "fabric",
            "files",
            "p4",
            "pcap",
            "sim",
            "tenant",
            "test",
        )
    },
    "job": {"common"},
    "infer": {"common", "lazy", "log_options"},
    "embed": {"common", "log_options", "switch"},
    "bench": {"common", "lazy"},
    "doctor": {"common", "job"},
    "switch": {"common", "job", "log_options"},
    "controller": {"common", "log_options", "switch"},
    "aggregator": {"common", "log_options", "switch"},
    "main": {"common", "lazy", "log_options"},
}
# Of all packages, these alone import torch, which may be absent.
TORCH_USERS = ("torch", "bench/torch")
# Each part of the extension belongs to one package, which comes to it by way of ina.extension.
NATIVE_OWNERS = {
    "blocks": {"host"},
    "congestion": {"congestion", "sim"},
    "host": {"host", "sim"},
    "quantize": {"host"},
    "rdma": {"host"},
    "sim": {"sim"},
    "shm": {"host"},
    "switch": {"switch"},
    "testing": {"testing"},
}

# Whoever else runs programs asks ina.switch.targets for a target and speaks to its pipelines.
C_TARGET = ("switch/c_target", "switch/emit_c")
MAX_KNOWING_C_TARGET = 4


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_pb2" not in path.name)


def package_of(path: Path) -> str:
    """ina/host/session.py is in "host", ina/errors.py in "errors", ina/__init__.py in ""."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py").removesuffix(".pyi")
    return "" if first == "__init__" else first


def uses_torch(path: Path) -> bool:
    """Whether the file is in a package that may import torch."""
    return path.relative_to(PACKAGE).as_posix().startswith(tuple(f"{one}/" for one in TORCH_USERS))


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Dotted names that the file imports, also inside functions; relative ones resolved."""
    dotted = ["ina", *path.relative_to(PACKAGE).with_suffix("").parts]
    # __init__.py is its package's own module, so this holds for it too.
    return frozenset(imports(path, dotted[:-1]))


def offences(path: Path) -> list[str]:
    """What the file imports and may not."""
    owner = package_of(path)
    found = []
    for name in sorted(imported(path)):
        parts = name.split(".")
        if parts[0] == "torch" and not uses_torch(path):
            found.append(f"{name}: only {' and '.join(TORCH_USERS)} import torch")
        if parts[0] != "ina" or len(parts) < 2:
            continue
        target = parts[1]
        if target == "_native" and owner != "extension":
            found.append(f"{name}: only by way of ina.extension, which refuses an old one")
        elif target == "extension" and owner not in NATIVE_OWNERS.get((*parts, "")[2], {owner}):
            found.append(f"{name}: belongs to another package")
        elif target in BELOW and target != owner and target not in BELOW[owner]:
            found.append(f"{name}: {owner or 'ina'} may not import {target}")
    return found


def room_of(path: Path) -> str:
    """ina/controller/jobs/registry.py is in "jobs", ina/controller/app.py in "app"."""
    first = path.relative_to(PACKAGE / package_of(path)).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def trespasses(path: Path) -> list[str]:
    """What a file imports of rooms of its package that it may not know."""
    package, owner = package_of(path), room_of(path)
    rooms = ROOMS[package]
    targets = {
        name: name.split(".")[2]
        for name in sorted(imported(path))
        if name.startswith(f"ina.{package}.")
    }
    return [
        f"{name}: {owner or package} may not import {target}"
        for name, target in targets.items()
        if target in rooms and target != owner and target not in rooms[owner]
    ]


def circles(paths: list[Path]) -> set[str]:
    """Modules that import themselves by way of others, and what is between two such."""
    dotted = {path: ["ina", *path.relative_to(PACKAGE).with_suffix("").parts] for path in paths}
    name_of = {".".join(d).removesuffix(".__init__"): path for path, d in dotted.items()}
    needs = {}
    for name, path in name_of.items():
        # What is no module is a name in one: `from ina.x import f` says ina.x.f.
        found = {one if one in name_of else one.rpartition(".")[0] for one in imported(path)}
        needs[name] = (found & name_of.keys()) - {name}
    outside = {""}
    while outside:
        needed = set().union(*needs.values())
        outside = {n for n, of_it in needs.items() if n not in needed or not of_it & needs.keys()}
        needs = {n: of_it & needs.keys() for n, of_it in needs.items() if n not in outside}
    return set(needs)


def knows_c_target(path: Path) -> bool:
    """Whether a file outside of the C target imports something of it."""
    return any(
        name.startswith(tuple(f"ina.{room.replace('/', '.')}" for room in C_TARGET))
        for name in imported(path)
    )
