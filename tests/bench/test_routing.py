"""``ina bench routing``: what a step takes at least, who is compared; and once as users run it."""

from __future__ import annotations

import json

import pytest

from ina.bench import routing
from ina.bench.limits import ina_wire_bytes, ring_wire_bytes
from ina.bench.report import Ratio
from ina.cli.bench.routing import TOPOLOGY
from ina.emulate.nodes import controller_config
from ina.errors import InaError
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

CASE = routing.RoutingCase(1e8, ["nearest", "ina", "gloo"], 1, 2, 64, TOPOLOGY)


def test_one_cable_is_narrow_and_the_name_of_a_job_says_its_placement() -> None:
    topology = routing.network(CASE, 1e7)
    rates = {tuple(end.node for end in link.ends): link.bandwidth_mbit for link in topology.links}
    assert rates.pop(("leaf1", "spine1")) == 10
    assert set(rates.values()) == {100}
    rules = controller_config(topology).job_rules
    assert [(rule.name, rule.placement) for rule in rules] == [
        ("nearest-*", "nearest"),
        ("ina-*", "ina"),
    ]


@pytest.mark.parametrize(
    ("uplink_bit_s", "limit_s"), [(1e8, 0.08), (3e8, 0.08), (0.25e8, 0.128), (1e7, 1.6 / 11)]
)
def test_no_step_is_faster_than_its_links(uplink_bit_s: float, limit_s: float) -> None:
    """1 MB a job: on a host's link, or both jobs' on the two cables out of the first rack."""
    assert routing.limit_s(CASE, uplink_bit_s, [1e6, 1e6], 0) == pytest.approx(limit_s)


def _row(placement: str, job: int, step_s: float, share: float = 0.5) -> routing.PlacementRow:
    return routing.PlacementRow(
        *("10mbit", placement, job, 3, 100, step_s, step_s, step_s, 2, share * step_s, share, 0)
    )


def test_ratios_say_how_many_times_as_fast_it_is() -> None:
    rows = [
        _row("nearest", 0, 0.75),
        _row("nearest", 1, 0.25),
        _row("ina", 0, 0.125),
        _row("ina", 1, 0.125),
    ]
    assert routing.ratios(rows, "10mbit") == [
        Ratio("uplink 10mbit ina/nearest", 4.0),
        Ratio("uplink 10mbit ina/limit", 0.5),
    ]
    assert routing.ratios(rows[:2], "10mbit") == []


def test_a_rank_that_says_nothing_is_told() -> None:
    with pytest.raises(InaError, match="bench routing: rank 0 of job 1 said nothing"):
        routing.told("step 1\n", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--placements", "ina,best"),
            "error: --placements best: want some of ina, nearest, single, grid",
        ),
        (("--uplink", "fast"), "error: --uplink fast: want a rate"),
        (("--link", "0"), "error: --link 0: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "routing", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)


@pytest.mark.long
def test_two_jobs_come_to_the_same_by_all_placements() -> None:
    need("soft")
    ran = bench(
        *("routing", "--uplink=20mbit", "--placements=nearest,ina,gloo", "--rounds=1"),
        *("--steps=2", "--width=64", "--json"),
    )
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    rows = {(row["placement"], row["job"]): row for row in document["rows"]}
    assert set(rows) == {(it, job) for it in ("nearest", "ina", "gloo") for job in (0, 1)}
    assert document["wrong"] == 0
    elems = 64 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10
    assert {row["gradient_bytes"] for row in rows.values()} == {4 * elems}
    wire_bytes = 2 * ina_wire_bytes(elems, 256)
    assert rows["ina", 0]["limit_s"] == pytest.approx(wire_bytes * 8 / 1.2e8)
    ring_bytes = sum(ring_wire_bytes(4 * elems, workers) for workers in (6, 3))
    assert rows["gloo", 1]["limit_s"] == pytest.approx(
        max(ring_bytes * 8 / 1.2e8, ring_wire_bytes(4 * elems, 3) * 8 / 1e8)
    )
    assert {ratio["name"] for ratio in document["ratios"]} == {
        f"uplink 20mbit ina/{of}" for of in ("nearest", "gloo", "limit")
    }
    assert ran.left == []
    assert ran.namespaces == []
