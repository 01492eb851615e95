"""Mode roce: rows by queue pair, and which switches take its jobs."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from ina import modes
from ina.controller.config import make_config
from ina.controller.errors import ConfigError
from ina.controller.job import Job, JobSpec
from ina.controller.switches.plan import plan_job
from ina.p4 import compiled, names
from ina.p4.builds import builds_of
from ina.p4.catalogue import PROGRAMS
from ina.protocol.peer import Peer
from ina.protocol.roce import PARENT_INDEX, switch_qp
from ina.protocol.spec import MAX_WORKERS, PARENT, Kind
from ina.tables.entities import entities_of
from ina.tables.values import Entry
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, Tree
from tests.worlds.fakes.switches import placed_over

SPINE, LEAF = Peer(IPv4Address("10.0.9.1"), 4791), Peer(IPv4Address("10.0.8.1"), 4791)


def job() -> Job:
    """Ranks 0 and 1 at switch leaf, which is the spine's first child; rank 2 at the spine."""
    leaf = Node("leaf", (0, 1), parent="spine", parent_port=9)
    forest = forest_of(Tree((Node("spine", (2,), ("leaf",), (1,)), leaf)))
    memory = {name: SlotRange(64, 64, 64) for name in ("leaf", "spine")}
    made = Job(JobSpec("j", 3), 7, 0.0, placed_over(forest, memory, 7, 5, mode=names.ROCE))
    for rank in range(3):
        peer = Peer(IPv4Address("10.0.0.1") + rank, 4000 + rank, None, 100 + rank)
        made.members[rank] = Endpoint(peer, 2 + rank)
    return made


def rows(switch: str, table: str) -> list[tuple[dict[str, Any], dict[str, int]]]:
    plan = plan_job(job(), switch, {"leaf": LEAF, "spine": SPINE})
    found = [it for it in plan.items if isinstance(it, Entry) and it.table == table]
    return [(dict(it.match), dict(it.params)) for it in found]


def test_children_are_known_by_the_queue_pair_that_they_send_to() -> None:
    number = job().number
    members = {match["worker"]: (match, params) for match, params in rows("leaf", names.MEMBERS)
               if match["kind"] == Kind.CONTRIBUTION}  # fmt: skip
    for rank in (0, 1):
        match, params = members[rank]
        assert match["dest_qp"] == switch_qp(number, rank)
        assert match["src_addr"] == int(IPv4Address("10.0.0.1") + rank)
        assert "src_port" not in match
        assert params == {"worker_bit": 1 << rank, "queue": 0}


def test_results_go_to_the_queue_pair_that_a_worker_has_said() -> None:
    found = {match["worker"]: params for match, params in rows("leaf", names.RECEIVERS)}
    for rank in (0, 1):
        assert found[rank]["dest_qp"] == 100 + rank
        assert found[rank]["src_port"] == 4000 + rank
        assert found[rank]["segment_mask"] == 0


def test_switches_speak_so_to_each_other() -> None:
    """What one sends to is what the other admits, both ways."""
    number = job().number
    up = next(p for match, p in rows("leaf", names.RECEIVERS) if match["worker"] == PARENT)
    index, leaf = next(
        (match["worker"], match)
        for match, _ in rows("spine", names.MEMBERS)
        if match["src_addr"] == int(LEAF.address)
    )
    assert up["dest_qp"] == leaf["dest_qp"] == switch_qp(number, index)
    down = next(p for match, p in rows("spine", names.RECEIVERS) if match["worker"] == index)
    parent = next(m for m, _ in rows("leaf", names.MEMBERS) if m["kind"] == Kind.RESULT)
    assert down["dest_qp"] == parent["dest_qp"] == switch_qp(number, PARENT_INDEX)


@pytest.mark.parametrize("values", builds_of(names.ROCE))
@pytest.mark.parametrize("switch", ["leaf", "spine"])
def test_its_program_takes_these_rows(values: int, switch: str) -> None:
    entities = entities_of(compiled(values, names.ROCE).p4info)
    for item in plan_job(job(), switch, {"leaf": LEAF, "spine": SPINE}).items:
        entities.encode(item)


def test_queue_pairs_of_a_switch_are_nobody_elses() -> None:
    found = {
        switch_qp(number, index)
        for number in (0, 1, 2, 255, 0xFFFF)
        for index in range(PARENT_INDEX + 1)
    }
    assert len(found) == 5 * (MAX_WORKERS + 1)
    assert all(1 << 23 <= it < 1 << 24 for it in found)


def test_a_switch_takes_packets_of_one_framing() -> None:
    for it in modes.every():
        takes = modes.sums(it, names.ROCE, shares_slots=False)
        assert takes == (it.name == names.ROCE)
    assert not modes.sums(modes.of(names.ROCE), names.POOL, shares_slots=False)
    assert [modes.of(names.ROCE).is_written_to(PROGRAMS[it]) for it in PROGRAMS
            if it.mode == names.ROCE] == [True] * 3  # fmt: skip


def test_what_a_configuration_implies() -> None:
    config = make_config({"switch": {"mode": names.ROCE}, "jobs": {"mode": names.ROCE}}, "test")
    assert (config.switch.values, config.switch.data_udp_port) == (248, 4791)
    with pytest.raises(ConfigError, match=r"jobs\.mode: no switch has mode 'pool'"):
        make_config({"switch": {"mode": names.ROCE}}, "test")
    with pytest.raises(ConfigError, match=r"values: 256 is not 56, 248 or 1016"):
        make_config({"switch": {"mode": names.ROCE, "values": 256}}, "test")
