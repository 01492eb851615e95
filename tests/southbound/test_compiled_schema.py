"""The Tofino compiler's own schema has what the controller writes, as the v1model twin has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ina.controller.switches.reconcile import Difference, compare
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import compiled, names
from ina.p4.catalogue import ProgramId, capabilities
from ina.p4.tofino import TARGETS
from ina.tables.values import DefaultAction, Entry
from ina.testing.control_plane import BfrtClient
from ina.testing.device import pool_program
from ina.testing.state import forward
from tests.southbound.bench import config_for, connect, two_workers
from tests.southbound.schema import PIPE, from_p4info
from tests.tofino.builds import BUILD_DEADLINE_S, TofinoBuilds
from tests.worlds.fakes.switches import plan_here
from tests.worlds.fakes.tofino import FakeTofino

DATA = Path(__file__).parent / "data" / "bf-rt.tofino.json"
WRITTEN = (
    *(names.OWN_ADDRESSES, names.JOBS, names.MEMBERS, names.CHILDREN, names.RECEIVERS),
    *(names.DMAC, names.IPV4_LPM, names.ROUTER_MACS, names.ECN_THRESHOLD),
)


@pytest.fixture
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DATA.read_text())
    return found


@pytest.fixture
def compiled_tofino(sde: Path, schema: dict[str, Any]) -> Iterator[FakeTofino]:
    server = FakeTofino(schema)
    yield server
    server.close()


def shape(schema: dict[str, Any]) -> dict[str, Any]:
    """What a controller sees of the tables that it writes, and of the counters that it reads."""
    seen: dict[str, Any] = {}
    for table in schema["tables"]:
        name = table["name"].removeprefix(PIPE)
        if name in WRITTEN:
            keys = {(k["name"], k["match_type"], k["type"]["width"]) for k in table["key"]}
            actions = {
                (action["name"], action["action_scope"] != "DefaultOnly"): {
                    (field["name"], field["type"]["width"]) for field in action["data"]
                }
                for action in table["action_specs"]
            }
            seen[name] = (keys, actions, table["size"])
        elif name in (*names.JOB_COUNTERS, *names.SHARED_JOB_COUNTERS, names.DROPS):
            fields = {field["singleton"]["name"] for field in table["data"]}
            seen[name] = (table["table_type"], table["size"], fields)
    return seen


def test_both_twins_have_what_the_controller_writes(schema: dict[str, Any]) -> None:
    ours = shape(from_p4info(compiled(64).p4info))
    assert set(ours) == {*WRITTEN, *names.JOB_COUNTERS, names.DROPS}
    assert shape(schema) == ours


def test_a_key_renamed_in_one_twin_shows(schema: dict[str, Any]) -> None:
    (jobs,) = [table for table in schema["tables"] if table["name"] == PIPE + names.JOBS]
    jobs["key"][0]["name"] = "job_number"
    assert shape(schema) != shape(from_p4info(compiled(64).p4info))


async def test_a_job_is_installed_by_the_compilers_schema(compiled_tofino: FakeTofino) -> None:
    session = await connect(config_for(compiled_tofino))
    await session.set_pipeline()
    writer = SwitchWriter(session)
    await writer.put_mark(0, None)
    plan = plan_here(two_workers(5))
    await writer.install(plan, (7,), 5)
    state = await writer.read_state()
    items = [item for stage in plan.stages for item in stage]
    assert compare({7: items}, state) == Difference()
    tables = {
        entry.table for entry in await writer.read_entries()
    }  # none of those that are constant
    assert tables == {names.JOBS, names.MEMBERS, names.RECEIVERS}
    assert len(await writer.read_drops()) == 8
    assert len(await writer.read_worker_counters(names.RECEIVERS)) == 2
    await writer.remove(plan)
    assert (await writer.read_state()).items == ()
    await session.close()


def test_the_conformance_device_writes_and_empties_it(compiled_tofino: FakeTofino) -> None:
    client = BfrtClient(compiled_tofino.address, 0)
    client.set_pipeline(pool_program(64))
    route = (("port", 3), ("src_mac", 1), ("dst_mac", 2))
    client.insert(
        [
            forward(9, 1),
            Entry(names.IPV4_LPM, (("dst_addr", "10.0.0.0/8"),), names.ROUTE, route),
            Entry(names.ROUTER_MACS, (("dst_mac", 1),), names.NO_ACTION),
            DefaultAction(names.ECN_THRESHOLD, names.MARK_ABOVE, (("packets", 9),)),
        ]
    )
    assert len(compiled_tofino.defaults) == 1
    client.set_pipeline(pool_program(64))
    assert compiled_tofino.defaults == {}
    assert compiled_tofino.rows(names.IPV4_LPM) == compiled_tofino.rows(names.DMAC) == []
    client.close()


@pytest.mark.timeout(BUILD_DEADLINE_S)
def test_what_is_checked_in_is_what_the_compiler_says(
    schema: dict[str, Any], tofino_builds: TofinoBuilds
) -> None:
    made = json.loads(tofino_builds.of("tofino").bfrt_schema.read_text())
    assert shape(made) == shape(schema)


@pytest.mark.timeout(BUILD_DEADLINE_S)
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_a_chip_lacks_of_mode_shared_its_capabilities_say(
    target: str, tofino_builds: TofinoBuilds
) -> None:
    ours = shape(from_p4info(compiled(64, names.SHARED).p4info))
    can = capabilities(ProgramId(names.SHARED, target, 64))
    assert not can.adds_sets
    assert not can.evicts
    del ours[names.MEMBERS][1][names.ADMIT_SET, True]
    del ours[names.JOB_EVICTIONS]
    made = tofino_builds.of(target, names.SHARED)
    assert shape(json.loads(made.bfrt_schema.read_text())) == ours
