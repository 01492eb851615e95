"""Three racks of three below two spines: where jobs are summed by each placement, on both switches,
and what two jobs of DDP come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ina.controller.config.rules import PLACEMENTS
from ina.emulate.load import load_topology
from ina.emulate.nodes import controller_config
from ina.emulate.topology import with_placement
from ina.fabric.shapes import leaf_spine
from tests.emulate.two_jobs import EXAMPLE, ONE, SUM, TRAIN, TWO, ended, train
from tests.selection import EMULATED
from tests.worlds.processes.emulations import call, left, need, new_name, up
from tests.worlds.processes.stand_ins import python


def narrow(folder: Path, mbit: int = 10) -> Path:
    """The same, but for the cable between the first leaf and the first spine."""
    text = EXAMPLE.read_text()
    cable = 'ends = ["leaf1", "spine1"]'
    assert text.count(cable) == 1
    file = folder / "narrow.toml"
    file.write_text(text.replace(cable, f"{cable}\nbandwidth_mbit = {mbit}"))
    return file


def test_the_example_is_what_a_leaf_spine_of_that_size_is() -> None:
    topology = load_topology(EXAMPLE)
    made = leaf_spine(2, 3, 3)
    assert {link.switches for link in topology.fabric.links} == {it.switches for it in made.links}
    assert len(topology.fabric.hosts) == 9
    config = controller_config(with_placement(topology, "panama"))
    assert config.placement == "panama"
    assert {link.rate_gbit for link in config.links} == {0.1}
    assert {host.rate_gbit for host in config.hosts} == {0.1}


def _sums(kind: str, file: Path, placement: str, out: Path) -> dict[str, Any]:
    """Sums over all hosts, exactly; returns what ``ina fabric show`` says meanwhile."""
    name, script = new_name(), out / "sum.py"
    out.mkdir()
    script.write_text(SUM)
    done = call(
        *("run", file, "--switch", kind, "--placement", placement, "--name", name),
        *("--out", out / "net", "--timeout-s", "200", "--", python(), script),
    )
    assert done.returncode == 0, done.stderr
    assert left(name) == {}
    shown: dict[str, Any] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("{"))
    )
    return shown


def roots(shown: dict[str, Any]) -> set[str]:
    (job,) = shown["jobs"]
    return {node["switch"] for node in job["nodes"] if not node["parent"]}


@pytest.mark.parametrize("kind", EMULATED)
def test_sums_go_around_a_narrow_uplink(kind: str, tmp_path: Path) -> None:
    need(kind)
    shown = _sums(kind, narrow(tmp_path), "ina", tmp_path / "out")
    assert roots(shown) == {"spine2"}
    busy = {f"{it['switch_a']}-{it['switch_b']}": it["busy_s"] for it in shown["links"]}
    assert busy["leaf1-spine1"] == 0.0
    assert busy["leaf1-spine2"] > 0.0


@pytest.mark.long
@pytest.mark.parametrize("kind", EMULATED)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_sums_are_exact_by_each_placement(kind: str, placement: str, tmp_path: Path) -> None:
    need(kind)
    shown = _sums(kind, EXAMPLE, placement, tmp_path / "out")
    (job,) = shown["jobs"]
    assert sorted({rank for node in job["nodes"] for rank in node["ranks"]}) == list(range(9))


def _two_jobs(file: Path, placement: str, folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    script, name = folder / "train.py", new_name()
    script.write_text(TRAIN)
    with up(file, name, folder / "net", "--placement", placement):
        jobs = [train(name, hosts, script, 12, 256) for hosts in (ONE, TWO)]
        return [ended(job) for job in jobs]


@pytest.mark.long
def test_two_jobs_of_ddp_come_to_the_same_parameters_by_each_placement(tmp_path: Path) -> None:
    need("soft")
    found = {
        placement: _two_jobs(EXAMPLE, placement, tmp_path / placement) for placement in PLACEMENTS
    }
    for job in (0, 1):
        assert len({said[job]["parameters"] for said in found.values()}) == 1
        assert all(said[job]["fallbacks"] == 0 for said in found.values())


@pytest.mark.long
def test_two_jobs_of_ddp_around_a_narrow_uplink(tmp_path: Path) -> None:
    """What is faster is measured by ``ina bench routing``; here both come to the same."""
    need("soft")
    file = narrow(tmp_path)
    nearest, own = (
        _two_jobs(file, placement, tmp_path / placement) for placement in ("nearest", "ina")
    )
    assert [it["parameters"] for it in nearest] == [it["parameters"] for it in own]
