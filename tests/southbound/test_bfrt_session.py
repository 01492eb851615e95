"""BFRuntime against a fake server: entries, groups, counters, ports, and what it refuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from ina.controller.switches.plan import FIRST_GROUP
from ina.controller.switches.reconcile import Difference, compare
from ina.controller.switches.southbound.tofino import TofinoSession
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import names
from ina.tables.bfrt import session as session_module
from ina.tables.errors import SwitchError
from ina.tables.session import SwitchSession
from ina.tables.values import Count, Counter, Entry, Group
from tests.southbound.bench import config_for, connect, two_workers, until
from tests.worlds.fakes.switches import plan_here
from tests.worlds.fakes.tofino import FakeTofino
from tests.worlds.loops import drive

PORTS: list[dict[str, Any]] = [
    {"port": "1/0", "speed": "100G", "fec": "rs"},
    {"port": 5, "speed": "25G"},
]


@asynccontextmanager
async def connected(tofino: FakeTofino, **switch: Any) -> AsyncIterator[TofinoSession]:
    session = await connect(config_for(tofino, switch))
    try:
        await session.set_pipeline()
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def writing(tofino: FakeTofino) -> AsyncIterator[SwitchWriter]:
    """A writer on a switch that has the epoch mark."""
    async with connected(tofino) as session:
        protocol: SwitchSession = session  # it has all of it
        writer = SwitchWriter(protocol)
        mark = (await writer.read_state()).mark
        await writer.put_mark(mark or 0, mark)
        yield writer


async def test_a_job_is_installed_read_back_and_removed(tofino: FakeTofino) -> None:
    async with writing(tofino) as writer:
        plan = plan_here(two_workers(5))
        await writer.install(plan, (7,), 5)
        state = await writer.read_state()
        assert state.mark == 5
        items = [item for stage in plan.stages for item in stage]
        assert compare({7: items}, state) == Difference()
        await writer.remove_entry(plan.members[0][0])
        assert [row["worker"] for row in tofino.rows(names.MEMBERS)] == [1]
        await writer.remove(plan)
        await writer.remove(plan)  # what is off already is no error
        assert (await writer.read_state()).items == ()
    assert tofino.rows("$pre.node") == tofino.rows("$pre.mgid") == []
    assert [row["job"] for row in tofino.rows(names.JOBS)] == [0]  # the mark


async def test_members_go_in_last_and_out_first(tofino: FakeTofino) -> None:
    async with writing(tofino) as writer:
        tofino.calls.clear()
        plan = plan_here(two_workers(5))
        await writer.install(plan, (7,), 5)
        await writer.remove(plan)
    assert [call for call in tofino.calls if "job_" not in call] == [
        "modify pipe.PoolIngress.admission.jobs",  # the mark
        "delete $pre.node",  # what somebody may have left
        "insert $pre.node",
        "insert $pre.mgid",
        "insert pipe.PoolEgress.address.receivers",
        "insert pipe.PoolIngress.admission.jobs",
        "insert pipe.PoolIngress.admission.members",
        "delete pipe.PoolIngress.admission.members",
        "delete pipe.PoolIngress.admission.jobs",
        "delete $pre.mgid",
        "delete $pre.node",
        "delete pipe.PoolEgress.address.receivers",
    ]


async def test_a_failed_install_leaves_nothing(tofino: FakeTofino) -> None:
    async with writing(tofino) as writer:
        plan = plan_here(two_workers(5))
        await writer.insert([replace(plan.members[1][0], params=(("worker_bit", 4),))])
        with pytest.raises(
            SwitchError, match=r"device 0: insert: ALREADY_EXISTS Already exists"
        ) as caught:
            await writer.install(plan, (7,), 5)
        assert caught.value.refused
        assert "\n" not in str(caught.value)
        assert [entry.table for entry in await writer.read_entries()] == [names.JOBS]
        assert await writer.read_groups() == []


async def test_entries_of_others_are_read_and_shown_as_such(tofino: FakeTofino) -> None:
    async with writing(tofino) as writer:
        other = Entry(names.DMAC, (("dst_mac", 9),), names.FORWARD, (("port", 1),))
        await writer.insert([other, Group(9, ((3, 0), (4, 0)))])
        assert (await writer.read_state()).items == ()
        assert Entry(names.DMAC, (("dst_mac", 9),), names.FORWARD, (("port", 1),)) in (
            await writer.read_entries()
        )
        assert await writer.read_groups() == [Group(9, ((3, 0), (4, 0)))]


async def test_counters_are_read_by_job_by_worker_and_by_reason(tofino: FakeTofino) -> None:
    async with writing(tofino) as writer:
        await writer.install(plan_here(two_workers(5)), (7,), 5)
        cell = (("$COUNTER_INDEX", 7),)
        seen = {"$COUNTER_SPEC_PKTS": 3, "$COUNTER_SPEC_BYTES": 900}
        tofino.entries[f"pipe.{names.JOB_RESULTS}"][cell] = dict(seen)
        for row in tofino.entries[f"pipe.{names.MEMBERS}"].values():
            row |= seen
        found = dict(await writer.read_job_counters([7]))
        assert found[Counter(names.JOB_RESULTS, 7)] == Count(3, 900)
        assert found[Counter(names.JOB_STALE, 7)] == Count(0, 0)
        assert len(found) == len(names.JOB_COUNTERS)
        workers = await writer.read_worker_counters(names.MEMBERS)
        assert [(dict(match)["worker"], count) for match, count in workers] == [
            (0, Count(3, 900)),
            (1, Count(3, 900)),
        ]
        assert len(await writer.read_drops()) == 8
        await writer.session.clear_counts([Counter(names.JOB_RESULTS, 7)])
        assert dict(await writer.read_job_counters([7])) == dict.fromkeys(found, Count(0, 0))


async def test_a_group_is_its_nodes_and_they_go_with_it(tofino: FakeTofino) -> None:
    async with connected(tofino) as session:
        number = FIRST_GROUP + 3
        group = Group(number, ((4, 1), (5, 2), (4, 3)))
        await session.insert([group])
        assert await session.read_groups() == [group]
        assert [row["$MULTICAST_NODE_ID"] for row in tofino.rows("$pre.node")] == [
            number << 8, number << 8 | 1, number << 8 | 2,
        ]  # fmt: skip
        with pytest.raises(SwitchError, match=f"there is a group {number}"):
            await session.insert([group])
        smaller = Group(number, ((6, 1),))
        await session.modify([smaller])
        assert await session.read_groups() == [smaller]
        assert len(tofino.rows("$pre.node")) == 1
        await session.delete([smaller, smaller])
        assert tofino.rows("$pre.node") == []
        with pytest.raises(SwitchError, match=f"there is no group {number}"):
            await session.modify([smaller])


async def test_nodes_of_a_controller_that_died_are_swept(
    tofino: FakeTofino, caplog: pytest.LogCaptureFixture
) -> None:
    lost, others = (FIRST_GROUP + 1) << 8, 77
    for node in (lost, others):
        tofino.entries["$pre.node"][(("$MULTICAST_NODE_ID", node),)] = {
            "$MULTICAST_RID": 1, "$MULTICAST_LAG_ID": [], "$DEV_PORT": [1], "action_name": None,
        }  # fmt: skip

    async with connected(tofino):
        assert [row["$MULTICAST_NODE_ID"] for row in tofino.rows("$pre.node")] == [others]
    assert "removed 1 multicast nodes that were in no group" in caplog.text


async def test_a_group_that_is_refused_leaves_no_nodes(tofino: FakeTofino) -> None:
    async with connected(tofino) as session:
        tofino.tables["$pre.mgid"].data["$MULTICAST_NODE_L1_XID"].choices = [1]
        with pytest.raises(SwitchError, match="INVALID_ARGUMENT"):
            await session.insert([Group(FIRST_GROUP, ((1, 1),))])
        assert tofino.rows("$pre.node") == []
        with pytest.raises(SwitchError, match="257 copies, at most 256"):
            await session.insert([Group(FIRST_GROUP, ((1, 1),) * 257)])


async def test_ports_are_set_up_once_and_made_anew_when_they_differ(
    tofino: FakeTofino, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(tofino, port=PORTS, data_port="1/0") as session:
        first, second = await session.read_ports()
        assert (first.number, first.name, first.speed, first.fec) == (
            0, "1/0", "100G", "reed-solomon",
        )  # fmt: skip
        assert (second.number, second.speed, second.fec, second.up) == (5, "25G", "none", True)
        assert session.port_number("1/0") == 0
    tofino.calls.clear()
    async with connected(tofino, port=PORTS, data_port="1/0"):
        assert tofino.calls == []  # links stay up
    other = [{**PORTS[0], "fec": "none", "autoneg": "off", "loopback": True}]
    async with connected(tofino, port=other, data_port=4) as session:
        (port,) = await session.read_ports()
        assert (port.fec, port.autoneg, port.loopback) == ("none", "force-disable", "mac-near")
    assert tofino.calls == ["delete $PORT", "insert $PORT"]
    assert "port 1/0 is made anew: $FEC, $AUTO_NEGOTIATION, $LOOPBACK_MODE differ" in caplog.text


async def test_a_port_that_the_switch_does_not_have(tofino: FakeTofino) -> None:
    port = [{"port": "99/0", "speed": "100G"}]
    with pytest.raises(SwitchError, match="port 99/0: the switch has no such front-panel port"):
        async with connected(tofino, port=port, data_port="99/0"):
            pass


async def test_mirror_sessions(tofino: FakeTofino) -> None:
    mirror = {"session": 3, "port": "2/0", "direction": "ingress", "max_bytes": 128}
    for port, number in (("2/0", 4), (9, 9)):  # the second time it is there already
        async with connected(tofino, mirror=[{**mirror, "port": port}]):
            (row,) = tofino.rows("$mirror.cfg")
        assert row["$sid"] == 3
        assert row["$ucast_egress_port"] == number
        assert (row["$direction"], row["$max_pkt_len"]) == ("INGRESS", 128)


def test_another_program_is_refused_before_anything_is_written(tofino: FakeTofino) -> None:
    async def attempt(says: str, **switch: Any) -> None:
        with pytest.raises(SwitchError, match=says):
            async with connected(tofino, **switch):
                pass

    async def scenario() -> None:
        await attempt("it does not run a program ina_other", program="ina_other")
        tofino.program = "ina_pool_128"
        await attempt("program ina_pool_128: it has 128 values a packet, switch.values is 64")
        tofino.program = "ina_pool"
        jobs = tofino.tables[f"pipe.{names.JOBS}"]
        kept = jobs.keys.pop("epoch")
        await attempt("program ina_pool: table .*jobs has no key epoch")
        jobs.keys["epoch"] = kept
        params = jobs.actions[names.ADMIT_JOB]
        kept = params.pop("group")
        await attempt("action .*admit_job has no parameter group")
        params["group"] = kept
        jobs.actions["other"] = jobs.actions.pop(names.ADMIT_JOB)
        await attempt("table .*jobs has no action .*admit_job")
        jobs.actions[names.ADMIT_JOB] = jobs.actions.pop("other")
        gone = tofino.tables.pop(f"pipe.{names.DROPS}")
        await attempt("it has no table pipe.*drops")
        tofino.tables[gone.name] = gone
        async with connected(tofino):
            assert tofino.calls == []

    drive(scenario())


async def test_a_value_too_wide_is_refused_with_its_field(tofino: FakeTofino) -> None:
    async with connected(tofino) as session:
        member = plan_here(two_workers(5)).members[0][0]
        wide = replace(member, match=(*member.match[:-1], ("worker", 256)))
        with pytest.raises(SwitchError, match="key worker: 256 does not fit into 8 bits"):
            await session.insert([wide])
        await session.delete([wide])  # what cannot be said cannot be there
        job = plan_here(two_workers(5)).stages[1][0]
        assert isinstance(job, Entry)
        with pytest.raises(SwitchError, match="parameter slots: 65536 does not fit into 16"):
            await session.insert([replace(job, params=(("slots", 1 << 16),))])
        assert tofino.rows(names.MEMBERS) == tofino.rows(names.JOBS) == []


async def test_nobody_answers(sde: object) -> None:
    nobody = FakeTofino({"tables": []})
    nobody.close()
    with pytest.raises(SwitchError, match="no answer from a BFRuntime server"):
        await connect(config_for(nobody))


async def test_a_server_that_is_silent_from_the_start(
    tofino: FakeTofino, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "CONNECT_TIMEOUT_S", 0.3)
    monkeypatch.setattr(session_module, "SUBSCRIBE_S", 0.1)
    tofino.silent = True

    with pytest.raises(SwitchError, match="no answer"):
        await connect(config_for(tofino))
    tofino.silent = False


async def test_one_client_at_a_time_has_the_program(tofino: FakeTofino) -> None:
    async with connected(tofino, election_id=5) as first:
        with pytest.raises(SwitchError, match=r"another controller is .*Client ID 5 al"):
            await connect(config_for(tofino, {"election_id": 6}))
        backup = await connect(config_for(tofino, {"election_id": 6}), standby=True)
        assert not backup.is_primary
        with pytest.raises(SwitchError, match="Client ID 5 already owns this P4"):
            await backup.read_groups()
        waiting = asyncio.create_task(backup.until_primary())
        await first.read_groups()
        await first.close()
        await asyncio.wait_for(waiting, 60)
        assert backup.is_primary
        await backup.read_groups()
        await backup.close()


async def test_a_server_that_ends_is_noticed(
    tofino: FakeTofino, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "PROBE_S", 0.05)

    async with connected(tofino) as session:
        tofino.stop()
        with pytest.raises(SwitchError, match=r"it closed the stream|UNAVAILABLE"):
            await session.until_backup()
        assert session.lost is not None
        with pytest.raises(SwitchError):
            await session.read_groups()


async def test_a_server_that_falls_silent_is_noticed(
    tofino: FakeTofino, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_module, "PROBE_S", 0.05)
    monkeypatch.setattr("ina.tables.bfrt.caller.CALL_TIMEOUT_S", 0.5)
    caplog.set_level(logging.ERROR)

    async with connected(tofino) as session:
        tofino.silent = True
        with pytest.raises(SwitchError, match="no answer within"):
            await session.until_backup()
        await until(lambda: not tofino.connections)  # nothing of it waits any more
        tofino.silent = False
