"""One controller, several switches: each job on one of them, and each switch by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from operator import contains
from pathlib import Path

import grpc
import numpy as np
import pytest

from ina.controller.app import ControllerApp
from ina.controller.config import Config, make_config
from ina.controller.errors import NoRoomError
from ina.controller.job import JobState
from ina.controller.jobs.placement import first_with_room
from ina.controller.memory import StaticPool
from ina.controller.service import supervisor as supervisor_module
from ina.controller.service.supervisor import Supervisor
from ina.controller.switches.capacity import Capacity
from ina.host import Session
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables.errors import SwitchError
from ina.tables.p4runtime import P4RuntimeSession
from tests.controller.proxy import Proxy
from tests.worlds.fakes.switches import memory_of
from tests.worlds.fakes.workers import workers_of
from tests.worlds.processes.controllers import coordinator, role, run_job, until

pytestmark = pytest.mark.usefixtures("quick_retries")

NAMES = ("a", "b")


@dataclass
class Place:
    """Two switches, each behind a proxy for one controller."""

    switches: dict[str, SoftSwitch]
    proxies: dict[str, Proxy]
    store_url: str

    def config(self, *, proxied: bool, election_id: int = 1, slots: int = 4096) -> Config:
        """Two jobs fill a switch."""
        tables = [
            {
                "name": name,
                "grpc_addr": self.proxies[name].address if proxied else switch.grpc_addr,
                "values": 64,
                "election_id": election_id,
                "data_udp_port": switch.udp_address(1)[1],
            }
            for name, switch in self.switches.items()
        ]
        return make_config(
            {
                "listen": "127.0.0.1:0",
                "switch": tables,
                "jobs": {"slots": slots},
                "store": {"url": self.store_url},
            },
            "test",
        )

    async def cut(self, *names: str) -> None:
        for name in names:
            self.proxies[name].up = False
            self.proxies[name].cut()

    def mend(self) -> None:
        for proxy in self.proxies.values():
            proxy.up = True


@asynccontextmanager
async def place(store_url: str = "") -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        switches = {name: stack.enter_context(SoftSwitch([UdpPort(1)])) for name in NAMES}
        proxies = {
            name: await stack.enter_async_context(Proxy(switch.grpc_addr))
            for name, switch in switches.items()
        }
        yield Place(switches, proxies, store_url)


def supervisor(app: ControllerApp) -> Supervisor:
    assert app._supervisor is not None
    return app._supervisor


def states(app: ControllerApp) -> list[str]:
    """``connected`` or ``unreachable``, by switch."""
    return [it.state.partition(":")[0] for it in supervisor(app).describe().switches]


async def jobs_by_switch(app: ControllerApp) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in NAMES}
    for job in coordinator(app).jobs():
        found[job.switch].append(job.name)
    return found


async def counts(app: ControllerApp) -> list[int]:
    """Entries of jobs, by switch, read back."""
    shown = [await app.show(name) for name in NAMES]
    return [len([entry for entry in it.entries if entry.job]) for it in shown]


def test_a_job_goes_to_the_first_switch_with_room() -> None:
    switches = {name: Capacity(StaticPool(16, 8)) for name in NAMES}
    placed = []
    for job in ("j", "k", "l", "m"):
        placed.append(first_with_room(job, 0, switches))
        switches[placed[-1]].memory.take(job, 0)
    assert placed == ["a", "a", "b", "b"]
    with pytest.raises(NoRoomError) as full:
        first_with_room("n", 0, switches)
    why = "all 2 ranges of 8 slots are in use (the switch has 16)"
    assert str(full.value) == f"job 'n': no slots left: switch a: {why}; switch b: {why}"


@pytest.mark.parametrize(("reached", "placed"), [("ab", "a"), ("b", "b"), ("", "a")])
def test_a_switch_that_is_not_reached_gets_no_job_while_another_is(
    reached: str, placed: str
) -> None:
    switches = {
        name: Capacity(StaticPool(16, 8), is_reached=partial(contains, reached, name))
        for name in NAMES
    }
    assert first_with_room("j", 0, switches) == placed


async def test_workers_are_told_their_switch_and_sum_there() -> None:
    async with place() as at, ControllerApp(at.config(proxied=False)) as app:
        filling = [await run_job(app, name) for name in ("j", "k")]
        assert {job.switch for job in filling} == {"a"}

        def train() -> None:
            with workers_of(app.listen_addr) as workers:
                reply = workers.create("seen", 2)
                told = (reply.switch, reply.switch_udp_port)
                assert told == ("b", at.switches["b"].udp_address(1)[1])
                with Session.join(app.listen_addr, "sums", 0, 1) as session:
                    total = session.all_reduce(np.arange(1000, dtype=np.int32))
                    assert (total == np.arange(1000)).all()
                    counters = workers.show("b").counters
                    sums = [c.packets for c in counters if c.name == "job_results"]
                    assert sum(sums) >= 1000 / 64

        await asyncio.to_thread(train)
        with pytest.raises(NoRoomError, match=r"switch a: all 2 .* switch b: all 2 "):
            await asyncio.gather(*(run_job(app, name) for name in ("l", "m", "n")))


async def test_numbers_and_epochs_are_one_controller_s_and_slots_each_switch_s() -> None:
    async with place() as at, ControllerApp(at.config(proxied=False)) as app:
        jobs = [await run_job(app, name) for name in "jklm"]
        assert [job.switch for job in jobs] == ["a", "a", "b", "b"]
        assert len({job.number for job in jobs}) == 4
        assert [job.epoch for job in jobs] == [1, 2, 3, 4]
        assert [memory_of(job).first for job in jobs] == [0, 4096, 0, 4096]
        assert await counts(app) == [12, 12]


async def test_an_operator_names_the_switch() -> None:
    async with place() as at, ControllerApp(at.config(proxied=False)) as app:
        await run_job(app, "j")

        def ask() -> None:
            with grpc.insecure_channel(app.listen_addr) as channel:
                stub = OperatorStub(channel)
                for call in (
                    lambda switch: stub.ShowSwitch(pb2.ShowSwitchRequest(switch=switch)),
                    lambda switch: stub.RemoveForeign(pb2.RemoveForeignRequest(switch=switch)),
                ):
                    with pytest.raises(grpc.RpcError, match=r"name a switch: .* has a, b"):
                        call("")
                    with pytest.raises(grpc.RpcError, match="no switch is called 'c'"):
                        call("c")
                    call("b")
                about = stub.ShowController(pb2.ShowControllerRequest())
                assert [(it.name, it.slots_used) for it in about.switches] == [
                    ("a", 4096),
                    ("b", 0),
                ]
                assert (about.slots_total, about.slots_used) == (2 * 8192, 4096)
                assert about.switch_state == "connected"
                (job,) = stub.ListJobs(pb2.ListJobsRequest()).jobs
                assert job.switch == "a"

        await asyncio.to_thread(ask)


async def test_a_switch_that_is_away_stops_its_own_jobs_alone_and_agrees_when_it_is_back() -> None:
    async with place() as at, ControllerApp(at.config(proxied=True)) as app:
        jobs = [await run_job(app, name) for name in "jkl"]
        before = await counts(app)
        with coordinator(app).events.subscribe() as events:
            await at.cut("a")
            await until(lambda: states(app) == ["unreachable", "connected"])
            seen = await anext(events)
        assert (seen.kind, seen.switch) == (pb2.SWITCH_UNREACHABLE, "a")
        assert role(app) == "primary"
        m = await run_job(app, "m")
        assert m.switch == "b"
        with pytest.raises(SwitchError):
            await coordinator(app).evict("j", "test")
        await coordinator(app).evict("l", "test")
        at.mend()
        await until(lambda: states(app) == ["connected", "connected"])
        await until(lambda: jobs[0].state is JobState.GONE)
        assert (jobs[1].state, m.state) == (JobState.RUNNING, JobState.RUNNING)
        assert [n - was for n, was in zip(await counts(app), before, strict=True)] == [-6, 0]


async def test_a_switch_that_restarts_ends_its_own_jobs_alone() -> None:
    async with place() as at, ControllerApp(at.config(proxied=True)) as app:
        lost, _, kept = [await run_job(app, name) for name in "jkl"]
        former = at.switches["a"]
        await asyncio.to_thread(former.stop)
        with SoftSwitch([UdpPort(1)], grpc_addr=former.grpc_addr):
            await until(lambda: lost.state is JobState.GONE)
            await until(lambda: states(app) == ["connected", "connected"])
            assert kept.state is JobState.RUNNING
            assert (await run_job(app, "n")).switch == "a"


async def test_a_controller_starts_though_one_of_its_switches_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # gRPC tries again for so long, whatever it is told.
    waits = P4RuntimeSession.connect.__func__.__kwdefaults__  # type: ignore[attr-defined]
    monkeypatch.setitem(waits, "timeout_s", 1.0)

    async with place(f"sqlite:///{tmp_path / 'store.db'}") as at:
        async with ControllerApp(at.config(proxied=True)) as app:
            for name in "jkl":
                await run_job(app, name)
            before = await counts(app)
        await at.cut("a")
        async with ControllerApp(at.config(proxied=True)) as app:
            assert role(app) == "primary"
            assert await jobs_by_switch(app) == {"a": ["j", "k"], "b": ["l"]}
            assert states(app) == ["unreachable", "connected"]
            at.mend()
            await until(lambda: states(app) == ["connected", "connected"])
            assert await counts(app) == before
        await at.cut("a", "b")
        with pytest.raises(SwitchError):
            async with ControllerApp(at.config(proxied=True)):
                pass


async def test_who_has_the_claim_stays_primary_while_one_switch_is_its(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "MAX_PAUSE_S", 0.05)

    async with (
        place(store_url) as at,
        ControllerApp(at.config(proxied=True, election_id=5)) as first,
        ControllerApp(at.config(proxied=False, election_id=3)) as second,
    ):
        assert (role(first), role(second)) == ("primary", "standby")
        jobs = [await run_job(first, name) for name in "jkl"]
        await at.cut("a")  # now nobody writes there, and the other one could
        await until(lambda: states(first) == ["unreachable", "connected"])
        await asyncio.sleep(0.3)
        assert (role(first), role(second)) == ("primary", "standby")
        at.mend()
        await until(lambda: states(first) == ["connected", "connected"])
        await until(lambda: supervisor(first).links["a"].agrees)
        assert (role(first), role(second)) == ("primary", "standby")
        assert all(job.state is JobState.RUNNING for job in jobs)

        await at.cut("a", "b")
        await until(lambda: role(second) == "primary")
        await until(lambda: all(link.agrees for link in supervisor(second).links.values()))
        assert await jobs_by_switch(second) == {"a": ["j", "k"], "b": ["l"]}
        assert await counts(second) == [12, 6]
        at.mend()
        await until(lambda: role(first) == "standby")
        await until(lambda: states(first) == ["connected", "connected"])
        assert (await run_job(second, "m")).epoch == 4
        assert role(second) == "primary"


async def test_another_who_takes_all_switches_has_the_claim(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'store.db'}"

    async with (
        place(store_url) as at,
        ControllerApp(at.config(proxied=False, election_id=3)) as first,
    ):
        await run_job(first, "j")
        async with ControllerApp(at.config(proxied=False, election_id=7)) as second:
            await until(lambda: (role(first), role(second)) == ("standby", "primary"))
            assert (await run_job(second, "k")).epoch == 2
        await until(lambda: role(first) == "primary")
        assert [job.name for job in coordinator(first).jobs()] == ["j", "k"]


async def test_a_switch_that_an_operator_takes_is_away_until_it_is_given_back() -> None:
    """As ``ina switch shell --take-over`` does."""

    async with place() as at, ControllerApp(at.config(proxied=False)) as app:
        await run_job(app, "j")
        shell = await P4RuntimeSession.connect(at.switches["a"].grpc_addr, 1, election_id=99)
        await until(lambda: states(app) == ["unreachable", "connected"])
        assert role(app) == "primary"
        assert (await run_job(app, "k")).switch == "b"
        await shell.close()
        await until(lambda: states(app) == ["connected", "connected"])
        assert await counts(app) == [6, 6]


async def test_jobs_of_a_switch_that_is_no_more_are_forgotten(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(store_url) as at:
        settings = at.config(proxied=False)
        async with ControllerApp(settings) as app:
            for name in "jkl":
                await run_job(app, name)
        document = settings.document()
        document["switch"][1]["name"] = "c"
        async with ControllerApp(make_config(document, "test")) as app:
            assert [job.name for job in coordinator(app).jobs()] == ["j", "k"]
    assert "job 'l': forgotten, for it is on switch 'b'" in caplog.text


async def test_a_switch_that_is_alone_may_be_called_otherwise(store_url: str) -> None:
    with SoftSwitch([UdpPort(1)]) as switch:
        for name in ("switch", "tor1"):
            document = {
                "listen": "127.0.0.1:0",
                "switch": {"name": name, "grpc_addr": switch.grpc_addr, "values": 64},
                "store": {"url": store_url},
            }
            async with ControllerApp(make_config(document, "test")) as app:
                if name == "switch":
                    await run_job(app, "j")
                (job,) = coordinator(app).jobs()
                assert (job.switch, job.state) == (name, JobState.RUNNING)
