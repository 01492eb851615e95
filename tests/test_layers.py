"""The shape of the house: which package may import which, and how long a file may get."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lines import ROOT, counts, table

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
        *("children", "controller", "document", "fabric", "modes", "tables", "testing", "trees"),
    },
    "bench": {
        *("errors", "protocol", "rpc", "p4", "metrics", "switch", "host", "controller"),
        *("emulate", "fabric", "modes", "netns", "sim", "tables", "testing", "torch"),
        *("trees", "units"),
    },
    "cli": {
        *("errors", "log", "protocol", "rpc", "p4", "metrics", "switch", "host", "controller"),
        *("bench", "doctor", "emulate", "files", "pcap", "sim", "testing", "torch", "units"),
        *("cache_dir", "congestion", "document", "fabric", "modes", "tables", "trees"),
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
        "emit_c": {"errors", "ir", "passes"},
        "match": {"errors", "ir"},
        "native_abi": set(),
        "queues": set(),
        "pipeline": {"errors", "ir", "match", "queues"},
        "target": {"errors", "ir", "passes", "pipeline", "port_set", "ports"},
        "c_target": {
            *("errors", "ir", "passes", "emit_c", "match", "native_abi", "pipeline", "target"),
            *("native_ports", "port_set", "ports"),
        },
        "targets": {"c_target", "target"},
        "graph": {"ir"},
        "ports": set(),
        "stats": set(),
        "metrics": {"stats"},
        "p4runtime": {"errors", "ir", "match", "pipeline", "target"},
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
        for noun in ("demo", "emulate", "fabric", "files", "p4", "pcap", "sim", "tenant", "test")
    },
    "job": {"common"},
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
    "congestion": {"congestion", "sim"},
    "host": {"host", "sim"},
    "quantize": {"host"},
    "sim": {"sim"},
    "shm": {"host"},
    "switch": {"switch"},
    "testing": {"testing"},
}

# Whoever else runs programs asks ina.switch.targets for a target and speaks to its pipelines.
C_TARGET = ("switch/c_target", "switch/emit_c")
MAX_KNOWING_C_TARGET = 4

MAX_LINES = 700
MAX_MEDIAN_LINES = 200


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_pb2" not in path.name)


def package_of(path: Path) -> str:
    """ina/host/session.py is in "host", ina/errors.py in "errors", ina/__init__.py in ""."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py").removesuffix(".pyi")
    return "" if first == "__init__" else first


def uses_torch(path: Path) -> bool:
    """Whether the file is in a package that may import torch."""
    return path.relative_to(PACKAGE).as_posix().startswith(tuple(f"{one}/" for one in TORCH_USERS))


def imported(path: Path) -> set[str]:
    """Dotted names that the file imports, also inside functions; relative ones resolved."""
    dotted = ["ina", *path.relative_to(PACKAGE).with_suffix("").parts]
    package = dotted[:-1]  # __init__.py is its package's own module, so this holds for it too
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    return names


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


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    assert offences(path) == []


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


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if package_of(path) in ROOMS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_rooms_of_a_package_know_those_below_them(path: Path) -> None:
    assert room_of(path) in ROOMS[package_of(path)]
    assert trespasses(path) == []


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("controller/switches", "from ina.controller.jobs.coordinator import Coordinator"),
        ("controller/jobs", "from ina.controller import watch"),
        ("controller/store", "def f():\n    import ina.controller.switches.plan"),
        ("switch/passes", "from ina.switch.emit_c.names import Names"),
        ("switch/ir", "from ina.switch.passes import plan"),
        ("switch/emit_c", "from ina.switch.pipeline import Pipeline"),
    ],
)
def test_a_way_up_between_rooms_is_found(
    where: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "ina")
    path = tmp_path / "ina" / where / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(trespasses(path)) == 1


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


def test_nothing_imports_in_a_circle() -> None:
    """Not for types alone, either, and not in functions."""
    assert circles(modules()) == set()


def test_a_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "ina")
    lines = {
        "a": "if TYPE_CHECKING:\n    from ina.b import B",
        "b": "def f():\n    import ina.c",
        "c": "from . import a",
        "d": "import ina.e",
        "e": "",
    }
    (tmp_path / "ina").mkdir()
    for name, text in lines.items():
        (tmp_path / "ina" / f"{name}.py").write_text(text)
    assert circles(sorted((tmp_path / "ina").iterdir())) == {"ina.a", "ina.b", "ina.c"}


def test_an_emitter_searches_no_tree() -> None:
    """What it would look for is in the plan."""
    for path in (PACKAGE / "switch" / "emit_c").glob("*.py"):
        assert not {name for name in imported(path) if name.startswith("ina.switch.ir.walk")}, path


def knows_c_target(path: Path) -> bool:
    """Whether a file outside of the C target imports something of it."""
    return any(
        name.startswith(tuple(f"ina.{room.replace('/', '.')}" for room in C_TARGET))
        for name in imported(path)
    )


def test_few_files_know_the_c_target_by_name() -> None:
    """Another target is its folder and a row in ina/switch/targets.py."""
    outside = [
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        if not path.relative_to(PACKAGE).as_posix().startswith(C_TARGET)
    ]
    found = [name for name in outside if knows_c_target(PACKAGE / name)]
    assert found == ["switch/targets.py"]
    assert len(found) <= MAX_KNOWING_C_TARGET


def test_the_switch_knows_no_object_by_its_identity() -> None:
    """Two runs, and two equal programs, must give one plan."""
    for path in (PACKAGE / "switch").rglob("*.py"):
        calls = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert "id" not in names, path


def test_every_package_has_a_place_in_the_layers() -> None:
    packages = {package_of(path) for path in modules()}
    assert packages <= set(BELOW)


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("host", "from ina.controller import jobs"),
        ("controller", "import ina.host.session"),
        ("protocol", "from ..switch import pipeline"),
        ("switch", "import torch.distributed"),
        ("bench", "import torch"),
        ("host", "from ina._native.host import Transport"),
        ("switch", "from ina.extension import host"),
        ("p4", "def f():\n    from ina.cli.main import app"),
    ],
)
def test_a_forbidden_import_is_found(
    where: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "ina")
    path = tmp_path / "ina" / where / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(offences(path)) == 1


def test_no_file_is_very_long_and_the_median_is_at_most_200() -> None:
    """What is too large within a file, tests/test_sizes.py says."""
    lines = counts()
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
    assert statistics.median(lines.values()) <= MAX_MEDIAN_LINES


def test_the_lines_are_counted_by_folder() -> None:
    said = table({"ina/a.py": 10, "ina/b/c.py": 90, "ina/__init__.py": 1, "t/x.py": 59, "s.sh": 60})
    assert [line.split() for line in said[1:]] == [
        ["ina", "2", "100", "50", "90", "1", "ina/b/c.py"],
        ["t", "1", "59", "59", "59", "1", "t/x.py"],
        ["all", "4", "219", "60", "90", "2", "ina/b/c.py"],
    ]


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


BLOCK_TORCH = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("torch is blocked", name=name)
sys.meta_path.insert(0, Refuse())
"""


def test_ina_works_where_torch_is_absent() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in modules()
        if not uses_torch(path) and path.name not in ("__main__.py", "main.py")
    ]
    result = python(
        BLOCK_TORCH + f"import importlib\nfor name in {names!r}: importlib.import_module(name)\n"
    )
    assert result.returncode == 0, result.stderr


def test_importing_torch_backend_without_torch_says_how_to_get_it() -> None:
    result = python(BLOCK_TORCH + "import ina.torch\n")
    assert result.returncode != 0
    assert "pip install torch" in result.stderr.splitlines()[-1]


def test_help_and_version_load_nothing_heavy() -> None:
    result = python(
        "import sys\nfrom ina.cli.main import run\n"
        "assert run(['--version']) == 0 and run(['--help']) == 0\n"
        "heavy = {'torch', 'numpy', 'grpc', 'finsy', 'sklearn', 'matplotlib', 'scapy'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    assert result.returncode == 0, result.stderr
