"""A program that runs although its source has changed since is said to be old."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from ina.cli.main import run
from ina.emulate.load import load_topology
from ina.emulate.programming import plan_switches
from ina.p4 import programs
from ina.p4.compile import compile_program
from ina.p4.origin import what_has_changed
from tests.p4 import fake_p4c


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``build/prog.json``, from ``src/prog.p4`` and what that includes."""
    fake_p4c.install(tmp_path, monkeypatch)
    (tmp_path / "src" / "lib").mkdir(parents=True)
    (tmp_path / "src" / "prog.p4").write_text(
        '#include <core.p4>\n  # include "lib/a.p4"\n#include "gone.p4"\n'
    )
    (tmp_path / "src" / "lib" / "a.p4").write_text('#include "b.p4"\n')
    (tmp_path / "src" / "lib" / "b.p4").write_text("// b\n")
    monkeypatch.chdir(tmp_path)
    return compile_program(Path("src/prog.p4"), Path("build"), "prog")[0]


def test_a_program_is_as_old_as_its_sources(built: Path) -> None:
    assert what_has_changed(built) == ""
    os.utime("src/prog.p4")  # another time, the same program
    assert what_has_changed(built) == ""


@pytest.mark.parametrize("name", ["src/prog.p4", "src/lib/a.p4", "src/lib/b.p4"])
def test_whatever_it_includes_counts(name: str, built: Path) -> None:
    with Path(name).open("a") as file:
        file.write("// edited\n")
    assert what_has_changed(built) == (
        f"build/prog.json is older than its source: {name} changed after it was compiled;"
        " what runs is the old program; ina p4 compile src/prog.p4 --out build"
    )


def test_the_tree_may_move_and_sources_may_be_gone(built: Path, tmp_path: Path) -> None:
    Path("src").rename("moved")
    assert what_has_changed(built) == ""
    (tmp_path / "tree").mkdir()
    for name in ("moved", "build"):
        Path(name).rename(tmp_path / "tree" / name.replace("moved", "src"))
    Path("tree/src/prog.p4").write_text("// edited\n")
    assert "tree/src/prog.p4 changed" in what_has_changed(Path("tree/build/prog.json"))


def test_without_hashes_the_times_tell(built: Path) -> None:
    """As another p4c than ours leaves it: ``build/prog.json`` in the folder of ``prog.p4``."""
    plain = Path("src/build/prog.json")
    plain.parent.mkdir()
    plain.write_text(json.dumps({"program": "prog.p4"}))
    os.utime(plain, (2e9, 2e9))
    assert what_has_changed(plain) == ""
    os.utime("src/lib/b.p4", (2e9 + 4, 2e9 + 4))  # of one checkout
    assert what_has_changed(plain) == ""
    os.utime("src/lib/b.p4", (2e9 + 6, 2e9 + 6))
    assert "src/lib/b.p4 changed after" in what_has_changed(plain)


def test_inas_own_builds_have_a_manifest_and_no_times() -> None:
    """A checkout leaves any times; the hashes of the sources are what counts."""
    found = programs.compiled(64).bmv2_json
    source = programs.program_source("pool")
    was = source.stat()
    try:
        os.utime(source, (4e9, 4e9))
        assert what_has_changed(found) == ""
    finally:
        os.utime(source, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"__meta__": {"ina": {"files": 3}}}', "\0"])
def test_what_is_no_program_is_left_to_who_loads_it(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    assert what_has_changed(file) == what_has_changed(tmp_path / "none.json") == ""


def test_it_is_said_when_it_is_run(built: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path("src/prog.p4").write_text("// edited\n")
    info = Path("build/prog.p4info.txtpb")
    # The fake's empty program is refused, after the warning.
    assert run(["switch", "--program", str(built), "--p4info", str(info)]) == 2
    assert run(["p4", "graph", "out.svg", "--program", str(built)]) == 2
    Path("s1-runtime.json").write_text(json.dumps({"p4info": str(info), "bmv2_json": str(built)}))
    Path("topology.json").write_text(
        json.dumps({
            "hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": []}},
            "switches": {"s1": {"runtime_json": "s1-runtime.json"}},
            "links": [["h1", "s1-p1"]],
        })
    )  # fmt: skip
    plan_switches(load_topology(Path("topology.json")), 0)
    assert len([r for r in caplog.records if "what runs is the old program" in r.message]) == 3


def test_an_edited_pool_program_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(programs, "source_sha256", lambda defines: "another")
    programs._warn_if_changed.cache_clear()
    for _ in range(2):
        programs.compiled(256)
    said = [r.getMessage() for r in caplog.records]
    assert len(said) == 1
    assert said[0].startswith("pool_v1model_256 was compiled from other P4 sources than those in")
    programs._warn_if_changed.cache_clear()
    caplog.clear()
    monkeypatch.undo()
    caplog.set_level(logging.WARNING)
    programs.compiled(256)
    assert caplog.records == []


def test_the_example_is_compiled_from_its_source() -> None:
    example = Path(__file__).parents[2] / "examples" / "p4" / "counter.json"
    assert json.loads(example.read_bytes())["__meta__"]["ina"]["files"].keys() == {"counter.p4"}
    assert what_has_changed(example) == ""
