"""A whole controller over BFRuntime: jobs, restarts, foreign entries, a lost switch, a standby."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from ina.controller.app import ControllerApp
from ina.controller.errors import JobPipesError, StandbyError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.service.supervisor import Supervisor
from ina.errors import MissingToolError
from ina.p4 import names
from ina.rpc import controller_pb2 as pb2
from ina.tables.bfrt import session as session_module
from ina.tables.errors import SwitchError
from tests.southbound.bench import HANG_S, config_for, two_workers, until
from tests.worlds.fakes.switches import of_jobs, only, plan_here, plan_of, writer_of
from tests.worlds.fakes.tofino import FakeTofino
from tests.worlds.fakes.workers import workers_of
from tests.worlds.loops import drive

HOSTS = [
    {"address": "10.0.0.1", "port": 4},
    {"address": "10.0.0.2", "port": "3/0"},  # device port 8
    {"address": "10.0.0.3", "port": 132},  # pipe 1
]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "PROBE_S", 0.05)
    monkeypatch.setattr(session_module, "BIND_PAUSE_S", 0.05)


def supervisor(app: ControllerApp) -> Supervisor:
    assert app._supervisor is not None
    return app._supervisor


def coordinator(app: ControllerApp) -> Coordinator:
    term = supervisor(app).term
    assert term is not None
    return term.coordinator


async def run_job(app: ControllerApp, name: str, ports: tuple[int, int] = (4, 8)) -> Job:
    at = coordinator(app)
    await at.create(JobSpec(name, 2), 0.0)
    where = two_workers(0, ports).members
    return (await asyncio.gather(*(at.join(name, r, where[r], HANG_S) for r in range(2))))[0]


@asynccontextmanager
async def controller(tofino: FakeTofino, **others: Any) -> AsyncIterator[ControllerApp]:
    async with ControllerApp(config_for(tofino, **others)) as app:
        yield app


async def entries(app: ControllerApp) -> list[str]:
    return [f"{entry.table} {entry.match}" for entry in of_jobs(await app.show())]


def test_workers_join_leave_and_are_shown(tofino: FakeTofino) -> None:
    def life(address: str) -> pb2.ShowSwitchReply:
        with workers_of(address) as workers:
            created = workers.create("j", 2)
            assert created.values_per_packet == 64
            joins = [workers.join("j", r, host=f"10.0.0.{r + 1}") for r in range(2)]
            reply = joins[0].result()
            joins[1].result()
            shown = workers.show()
            for rank in range(2):
                workers.leave("j", rank, reply.epoch)
            assert [entry.table for entry in of_jobs(workers.show())] == ["port"]
            return shown

    async def scenario() -> None:
        switch = {"port": [{"port": "3/0", "speed": "100G", "fec": "rs"}]}
        async with controller(tofino, switch=switch, host=HOSTS) as app:
            shown = await asyncio.to_thread(life, app.listen_addr)
        assert sorted(entry.table for entry in of_jobs(shown)) == [
            "jobs", "members", "members", "multicast group", "port", "receivers", "receivers",
        ]  # fmt: skip
        (group,) = [entry.action for entry in shown.entries if entry.table == "multicast group"]
        assert group == "replicate(4#1 8#2)"
        (port,) = [entry for entry in shown.entries if entry.table == "port"]
        assert (port.match, port.action) == (
            "port=8 (3/0)",
            "100G, fec reed-solomon, autoneg default, loopback none, up",
        )
        assert {counter.name for counter in shown.counters} >= {"job_results", "member_packets"}
        assert tofino.owner is None  # the session is closed

    drive(scenario())


async def test_workers_in_different_pipes_are_refused_and_all_hear_why(tofino: FakeTofino) -> None:
    says = (
        "job 'j': its workers are in different pipes of the switch: rank 0 behind port 4 (pipe 0),"
        " rank 1 behind port 132 (pipe 1); a sum is in one pipe's registers, so all must be behind"
        " ports of the same pipe"
    )

    def attempt(address: str) -> None:
        with workers_of(address) as workers:
            workers.create("j", 2)
            joins = [workers.join("j", 0, host="10.0.0.1"), workers.join("j", 1, host="10.0.0.3")]
            for join in joins:
                with pytest.raises(grpc.RpcError) as caught:
                    join.result()
                assert isinstance(caught.value, grpc.Call)
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                assert caught.value.details() == says
            assert workers.jobs() == []

    async with controller(tofino, host=HOSTS) as app:
        await asyncio.to_thread(attempt, app.listen_addr)
        with pytest.raises(JobPipesError, match=r"port 8 \(pipe 0\), rank 1 behind port 200"):
            await run_job(app, "k", (8, 200))
        assert (await run_job(app, "k", (200, 131))).state is JobState.RUNNING  # both in pipe 1


async def test_a_restarted_controller_goes_on_and_reports_what_is_foreign(
    tofino: FakeTofino, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = {"path": str(tmp_path / "s.db")}

    async with controller(tofino, store=store) as app:
        job = await run_job(app, "j")
        before = await entries(app)
        assert len(before) == 6
    stranger = two_workers(job.epoch + 1000)
    writes = [call for call in tofino.calls if call.startswith("insert")]
    async with controller(tofino, store=store) as app:
        assert await entries(app) == before
        assert [call for call in tofino.calls if call.startswith("insert")] == writes
        (same,) = coordinator(app).jobs()
        assert (same.state, same.epoch) == (JobState.RUNNING, job.epoch)
        writer = writer_of(coordinator(app))
        assert writer is not None
        for stage in plan_here(stranger).stages:
            await writer.insert(stage)
        await writer.remove_entry(plan_of(coordinator(app), "j").members[1][0])
        await coordinator(app).reconcile(only(coordinator(app)), fresh=False)
        assert len(only(coordinator(app)).foreign) == 6
        assert len(await entries(app)) == 12  # rank 1's member is back
        await coordinator(app).remove_foreign(only(coordinator(app)))
        assert sorted(await entries(app)) == sorted(before)
        assert (await run_job(app, "k")).epoch == stranger.epoch + 1
    assert "6 entries that no job in the store owns (job numbers 7)" in caplog.text


async def test_a_switch_that_restarts_ends_its_jobs_and_takes_new_ones(tofino: FakeTofino) -> None:
    async with controller(tofino) as app:
        job = await run_job(app, "j")
        with coordinator(app).events.subscribe() as listener:
            tofino.stop()
            await until(lambda: supervisor(app).unreachable is not None)
            assert job.state is JobState.RUNNING
            with pytest.raises(SwitchError):
                await app.show()
            tofino.start()
            told = []
            async for event in listener:
                told.append((pb2.EventKind.Name(event.kind), event.reason))
                if event.kind == pb2.JOB_ENDED:
                    break
        assert [kind for kind, _ in told[:2]] == ["SWITCH_UNREACHABLE", "SWITCH_LOST"]
        assert told[1][1] == "the switch has lost its registers"
        await until(lambda: supervisor(app).unreachable is None)
        assert (await run_job(app, "j")).epoch > job.epoch


async def test_a_lost_connection_alone_changes_nothing(tofino: FakeTofino) -> None:
    async with controller(tofino) as app:
        job = await run_job(app, "j")
        before = await entries(app)
        with coordinator(app).events.subscribe() as listener:
            tofino.cut()
            async for event in listener:
                if event.kind == pb2.SWITCH_BACK:
                    break
        assert await entries(app) == before
        assert job.state is JobState.RUNNING


async def test_a_job_whose_entries_the_switch_refuses_does_not_start(tofino: FakeTofino) -> None:
    async with controller(tofino) as app:
        tofino.tables[f"pipe.{names.MEMBERS}"].size = 1
        with pytest.raises(SwitchError, match="insert: RESOURCE_EXHAUSTED Not enough space"):
            await run_job(app, "j")
        await until(lambda: not coordinator(app).jobs())
        assert await entries(app) == []
        tofino.tables[f"pipe.{names.MEMBERS}"].size = 4096
        await run_job(app, "j")


async def test_the_standby_takes_over_when_the_primary_has_gone(
    tofino: FakeTofino, tmp_path: Path
) -> None:
    store = {"path": str(tmp_path / "s.db")}

    async with (
        controller(tofino, store=store, switch={"election_id": 5}) as first,
        controller(tofino, store=store, switch={"election_id": 6}) as second,
    ):
        assert (first.role, second.role) == ("primary", "standby")
        with pytest.raises(StandbyError):
            await second.show()
        why = supervisor(second)._why_standby()
        assert why.startswith("another controller is primary (Client ID 6 trying to bind")
        job = await run_job(first, "j")
        before = await entries(first)
        await first.__aexit__(None, None, None)
        await until(lambda: second.role == "primary")
        assert await entries(second) == before
        assert (await run_job(second, "k")).epoch == job.epoch + 1


async def test_a_name_that_the_switch_does_not_have_stops_the_start(tofino: FakeTofino) -> None:
    hosts = [{"address": "10.0.0.1", "port": "80/0"}]
    with pytest.raises(SwitchError, match="port 80/0: the switch has no such front-panel port"):
        async with controller(tofino, host=hosts):
            pass


async def test_without_an_sde_the_controller_does_not_start(
    tofino: FakeTofino, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SDE_INSTALL")

    with pytest.raises(MissingToolError, match="set SDE_INSTALL"):
        async with controller(tofino):
            pass
