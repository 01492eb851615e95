"""The shape of the house: which package may import which, and how long a file may get."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests import borrowing, layers
from tests.layers import (
    BELOW,
    C_TARGET,
    MAX_KNOWING_C_TARGET,
    PACKAGE,
    ROOMS,
    circles,
    imported,
    knows_c_target,
    modules,
    offences,
    package_of,
    room_of,
    trespasses,
    uses_torch,
)
from tests.lines import ROOT, counts, table
from tests.sources import nodes

MAX_LINES = 700
MAX_MEDIAN_LINES = 200


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    assert offences(path) == []


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
        ("switch/passes", "from ina.switch.emit.names import Names"),
        ("switch/ir", "from ina.switch.passes import plan"),
        ("switch/emit_c", "from ina.switch.pipeline import Pipeline"),
        ("switch/emit", "from ina.switch.emit_c.memory import StateBlock"),
    ],
)
def test_a_way_up_between_rooms_is_found(
    where: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "PACKAGE", tmp_path / "ina")
    path = tmp_path / "ina" / where / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(trespasses(path)) == 1


def test_nothing_imports_in_a_circle() -> None:
    """Not for types alone, either, and not in functions."""
    assert circles(modules()) == set()


def test_a_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "PACKAGE", tmp_path / "ina")
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
    folders = (PACKAGE / "switch" / "emit", PACKAGE / "switch" / "emit_c")
    for path in (path for folder in folders for path in folder.glob("*.py")):
        assert not {name for name in imported(path) if name.startswith("ina.switch.ir.walk")}, path


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
        calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
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
    monkeypatch.setattr(layers, "PACKAGE", tmp_path / "ina")
    path = tmp_path / "ina" / where / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(offences(path)) == 1


def test_what_tests_share_is_in_no_test_and_worlds_know_no_test() -> None:
    """The list of exceptions may only shrink: ``python -m tests.borrowing`` takes them out."""
    assert sorted(borrowing.found()) == sorted(borrowing.exceptions())


@pytest.mark.parametrize(
    ("path", "imported", "found"),
    [
        ("tests/a/test_b.py", "tests.a.test_c.helper", ["tests/a/test_b.py: tests.a.test_c"]),
        ("tests/a/help.py", "tests.test_c", ["tests/a/help.py: tests.test_c"]),
        ("tests/a/test_b.py", "tests.controller.hand.helper", []),
        ("tests/a/test_b.py", "tests.worlds.fakes.tap.Tap", []),
        ("tests/worlds/a.py", "tests.host.hand.Hand", ["tests/worlds/a.py: tests.host.hand"]),
        ("tests/worlds/a.py", "tests.worlds.fakes.tap.Tap", []),
        ("tests/worlds/a.py", "tests.selection.LONG", []),
    ],
)
def test_what_is_borrowed_is_found(path: str, imported: str, found: list[str]) -> None:
    assert list(borrowing.borrowed(path, {imported})) == found


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
