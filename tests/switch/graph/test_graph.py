"""The picture has every part of the program, by its full name, and no two boxes overlap."""

from __future__ import annotations

import functools
import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ina.cli.main import run
from ina.p4 import compiled
from ina.p4.info import read_p4info
from ina.p4.programs import P4_DIR
from ina.protocol.emit import ROOT
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS
from ina.switch.graph import draw_program
from ina.switch.ir import Program, load_program
from tests.worlds.fakes.p4runtime import PROGRAMS as FEATURES

SVG = "{http://www.w3.org/2000/svg}"
PROGRAMS = sorted((Path(__file__).parent.parent / "programs").glob("*.json"))
POOLS = [compiled(values).bmv2_json for values in VALUES_PER_PACKET_BUILDS]
ALL = [*POOLS, *PROGRAMS, FEATURES / "features.json"]


@functools.cache
def loaded(path: Path) -> Program:
    """Large ones take a second."""
    return load_program(path)


@functools.cache
def page_of(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def groups(svg: str, kind: str) -> list[ET.Element]:
    return [g for g in page_of(svg).iter(f"{SVG}g") if g.get("class") == kind]


def names(svg: str, kind: str) -> list[str]:
    return [g.get("data-name", "") for g in groups(svg, kind)]


def titles(svg: str, kind: str) -> list[str]:
    """Words of what is shown on hovering."""
    texts = [g.findtext(f"{SVG}title") or "" for g in groups(svg, kind)]
    return [word for text in texts for word in text.split()]


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in page_of(svg).iter(f"{SVG}text")]


def apart_and_inside(svg: str) -> bool:
    """Whether all boxes are in the picture; no two may overlap."""
    page = page_of(svg)
    width, height = float(page.get("width", 0)), float(page.get("height", 0))
    boxes = []
    for kind in ("table", "register", "counter", "state", "header", "checksum"):
        for group in groups(svg, kind):
            rect = group.find(f"{SVG}rect")
            assert rect is not None
            x, y, w, h = (float(rect.get(name, 0)) for name in ("x", "y", "width", "height"))
            boxes.append((x, y, x + w, y + h))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)
    return all(box[2] <= width and box[3] <= height for box in boxes)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_everything_is_there_once_and_no_box_covers_another(path: Path) -> None:
    program = loaded(path)
    svg = draw_program(program)
    assert apart_and_inside(svg)
    assert sorted(names(svg, "table")) == sorted(table.name for table in program.tables)
    assert sorted(titles(svg, "register")) == sorted(r.name for r in program.registers)
    assert sorted(names(svg, "counter")) == sorted(c.name for c in program.counters)
    assert sorted(names(svg, "state")) == sorted(program.states)
    assert names(svg, "header") == list(program.deparse)
    written = texts(svg)
    for table in program.tables:
        for key in table.keys:
            assert f"key  {key.name}: {key.width_bits} bits, {key.kind.value}" in written
        for action in table.actions:
            called = f"do   {action.name.rpartition('.')[2]}("
            assert any(line.startswith(called) for line in written)


@pytest.mark.parametrize("values", VALUES_PER_PACKET_BUILDS)
def test_the_pool_program(values: int) -> None:
    """Against P4Info, which p4c writes apart from the JSON that is drawn."""
    program = compiled(values)
    info = read_p4info(program.p4info)
    svg = draw_program(loaded(program.bmv2_json))
    declared = [t.name for t in info.tables] + [r.name for r in info.registers]
    declared += [c.name for c in info.counters]
    assert set(names(svg, "control")) == {name.rpartition(".")[0] for name in declared}
    ingress = [name for name in names(svg, "control") if name.startswith("PoolIngress")]
    assert ingress.pop(0) == "PoolIngress"  # a table of the diagram itself
    order = ["admission", "slots", "contribution", "accumulate", "distribute", "forwarding"]
    assert [name.rpartition(".")[2] for name in ingress] == order
    written = texts(svg)
    assert f"register value_0 .. value_{values - 1}" in written
    slots = (P4_DIR / "shared" / "slots.p4").read_text().splitlines()
    own_epoch = next(n for n, line in enumerate(slots, 1) if "own_epoch" in line)
    assert f"read at  slots.p4:{own_epoch}" in written
    assert "if jobs hits" in written
    assert "udp.dst_port == 0x4560" in "\n".join(written)


def test_the_picture_in_the_docs_is_of_this_program() -> None:
    drawn = draw_program(loaded(compiled(256).bmv2_json), "pool.p4")
    assert (ROOT / "docs/pool.svg").read_text() == drawn, "ina p4 graph docs/pool.svg"


def test_what_is_never_reached_is_shown_as_such() -> None:
    program = load_program(PROGRAMS[0].parent / "registers.json")
    without = type(program)(**{**vars(program), "ingress": ()})
    svg = draw_program(without)
    assert "touched by nobody" in texts(svg)
    assert sorted(titles(svg, "register")) == sorted(r.name for r in program.registers)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pool.svg"
    assert run(["p4", "graph", str(out), "--values", "64", "--json"]) == 0
    assert '"tables":9,"registers":71,"counters":9' in capsys.readouterr().out
    assert "pool.p4" in texts(out.read_text())
    for wrong, said in (
        (["--values", "65"], "65"),
        (["--program", __file__], "not JSON"),
        (["--program", "/nonexistent"], "/nonexistent"),
    ):
        assert run(["p4", "graph", str(out), *wrong]) == 2
        assert said in capsys.readouterr().err
    assert run(["p4", "graph", "/nonexistent/a.svg"]) == 2
