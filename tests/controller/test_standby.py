"""Two controllers with one store: who is primary, who takes over, and who may write no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from ina.controller.app import ControllerApp
from ina.controller.errors import FencedError, StandbyError
from ina.controller.job import JobSpec, JobState
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import ControllerStub, OperatorStub
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables import p4runtime
from ina.tables.errors import SwitchError
from ina.tables.p4runtime import P4RuntimeSession
from tests.controller.proxy import Proxy
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.processes.controllers import (
    HANG_S,
    config,
    coordinator,
    endpoint,
    reaches,
    role,
    run_job,
    until,
)

pytestmark = pytest.mark.usefixtures("quick_retries")


@asynccontextmanager
async def pair(
    store_url: str,
) -> AsyncIterator[tuple[ControllerApp, ControllerApp, Proxy, SoftSwitch]]:
    """A primary that reaches the switch through a proxy, and its standby."""
    with SoftSwitch([UdpPort(1)]) as switch:
        async with (
            Proxy(switch.grpc_addr) as proxy,
            ControllerApp(config(proxy.address, store_url, 5)) as first,
            ControllerApp(config(switch.grpc_addr, store_url, 3)) as second,
        ):
            assert (role(first), role(second)) == ("primary", "standby")
            yield first, second, proxy, switch


async def refusal(app: ControllerApp) -> str:
    """What a worker hears."""

    def ask() -> str:
        with grpc.insecure_channel(app.listen_addr) as channel:
            with pytest.raises(grpc.RpcError) as unary:
                ControllerStub(channel).CreateJob(pb2.CreateJobRequest(name="x"), timeout=HANG_S)
            with pytest.raises(grpc.RpcError) as stream:
                next(iter(ControllerStub(channel).Watch(pb2.WatchRequest(), timeout=HANG_S)))
        errors = [unary.value, stream.value]
        assert all(isinstance(error, grpc.Call) for error in errors)
        assert {error.code() for error in errors} == {grpc.StatusCode.UNAVAILABLE}
        (said,) = {error.details() for error in errors}
        return str(said)

    return await asyncio.to_thread(ask)


async def test_a_standby_refuses_and_says_who_is_primary(store_url: str) -> None:
    async with pair(store_url) as (first, second, _, _):
        assert await refusal(second) == ("standby: another controller is primary (election id 5)")
        with pytest.raises(StandbyError):
            await second.show()

        def shown(app: ControllerApp) -> pb2.ShowControllerReply:
            with grpc.insecure_channel(app.listen_addr) as channel:
                stub = OperatorStub(channel)
                return stub.ShowController(pb2.ShowControllerRequest(), timeout=HANG_S)

        await run_job(first, "j")
        primary = await asyncio.to_thread(shown, first)
        standby = await asyncio.to_thread(shown, second)
        assert (primary.role, primary.jobs, primary.slots_used) == ("primary", 1, 512)
        assert (primary.election_id, standby.election_id) == (5, 3)
        assert (standby.role, standby.switch_state) == ("standby", "connected")
        reasons = (primary.standby_reason, standby.standby_reason)
        assert reasons == ("", "another controller is primary (election id 5)")


async def test_a_controller_that_stops_says_so(store_url: str) -> None:
    async with pair(store_url) as (first, _, _, _):
        assert first._supervisor is not None
        await first._supervisor.close()  # its server still answers for a moment
        assert await refusal(first) == "standby: the controller is stopping"


async def test_the_standby_takes_over_jobs_untouched_and_the_former_primary_comes_back_as_standby(
    store_url: str,
) -> None:
    async with pair(store_url) as (first, second, proxy, _):
        job = await run_job(first, "j")
        entries = of_jobs(await first.show())
        former = coordinator(first)

        proxy.up = False  # the primary's network fails
        proxy.cut()
        await until(lambda: role(second) == "primary")
        assert of_jobs(await second.show()) == entries
        (same,) = coordinator(second).jobs()
        assert (same.name, same.state, same.epoch) == ("j", JobState.RUNNING, job.epoch)
        assert same.members == job.members

        # It does not know yet. What it decides now, nobody will ever see.
        with pytest.raises((FencedError, SwitchError)):
            await former.create(JobSpec("late", 2), 0.0)
        await until(lambda: role(first) == "standby")
        assert [job.name for job in coordinator(second).jobs()] == ["j"]

        proxy.up = True
        await until(lambda: reaches(first))
        assert role(first) == "standby"
        assert "another controller is primary" in await refusal(first)
        assert (await run_job(second, "k")).epoch == job.epoch + 1


async def test_a_stopped_primary_is_followed_and_follows_again(store_url: str) -> None:
    async with pair(store_url) as (first, second, _, _):
        epochs = [(await run_job(first, "a")).epoch]
        await first.__aexit__(None, None, None)
        await until(lambda: role(second) == "primary")
        epochs.append((await run_job(second, "b")).epoch)
        async with ControllerApp(first.config) as third:  # its id is too low by now
            assert role(third) == "standby"
            await second.__aexit__(None, None, None)
            await until(lambda: role(third) == "primary")
            epochs.append((await run_job(third, "c")).epoch)
            assert [job.name for job in coordinator(third).jobs()] == ["a", "b", "c"]
        assert epochs == [1, 2, 3]


async def test_joins_that_wait_when_the_primary_is_demoted_hear_of_it(store_url: str) -> None:
    async with pair(store_url) as (first, _, _, switch):
        at = coordinator(first)
        await at.create(JobSpec("j", 2), 0.0)
        waiting = asyncio.create_task(at.join("j", 0, endpoint(0), HANG_S))
        async with ControllerApp(config(switch.grpc_addr, store_url, 9)) as new:
            with pytest.raises(StandbyError, match="standby: another controller is primary"):
                await waiting
            assert role(new) == "primary"
            assert role(first) == "standby"
            assert (await run_job(new, "j")).state is JobState.RUNNING  # nobody is in it


async def test_the_switch_restarts_under_two_controllers(store_url: str) -> None:
    async with pair(store_url) as (first, second, _, switch):
        await run_job(first, "j")
        await asyncio.to_thread(switch.stop)
        again = SoftSwitch([UdpPort(1)], grpc_addr=switch.grpc_addr)
        await asyncio.to_thread(again.start)
        try:
            await until(lambda: {role(first), role(second)} == {"primary", "standby"})
            await until(lambda: first._supervisor is not None and not first._supervisor.unreachable)
            primary = first if role(first) == "primary" else second
            await until(lambda: not coordinator(primary).jobs())
            # The next one; or by the clock, where one set the pipeline and the other took over.
            assert (await run_job(primary, "j")).epoch >= 2
        finally:
            await asyncio.to_thread(again.stop)


async def test_a_controller_that_is_overtaken_while_it_starts_is_on_standby(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SoftSwitch([UdpPort(1)]) as switch:
        first = ControllerApp(config(switch.grpc_addr, store_url, 3))
        second = ControllerApp(config(switch.grpc_addr, store_url, 5))
        set_pipeline = P4RuntimeSession.set_pipeline
        overtaken: list[ControllerApp] = []

        async def set_late(session: P4RuntimeSession) -> bool:
            if not overtaken:
                overtaken.append(second)
                await second.__aenter__()
            return await set_pipeline(session)

        monkeypatch.setattr(P4RuntimeSession, "set_pipeline", set_late)
        async with first:
            assert role(first) == "standby"
            await until(lambda: role(second) == "primary")
            assert (await run_job(second, "j")).state is JobState.RUNNING
        await second.__aexit__(None, None, None)


async def test_without_a_store_there_is_nothing_to_take_over() -> None:
    with SoftSwitch([UdpPort(1)]) as switch:
        async with ControllerApp(config(switch.grpc_addr, "", 5)):
            with pytest.raises(SwitchError, match=r"another controller is primary .*id 5"):
                async with ControllerApp(config(switch.grpc_addr, "", 4)):
                    pass


async def test_two_controllers_with_one_election_id(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(p4runtime, "FORMER_SELF_PAUSE_S", 0.01)  # the former one stays
    with SoftSwitch([UdpPort(1)]) as switch:
        settings = config(switch.grpc_addr, store_url, 1)
        async with ControllerApp(settings) as first, ControllerApp(settings) as second:
            assert (role(first), role(second)) == ("primary", "standby")
            await first.__aexit__(None, None, None)
            await until(lambda: role(second) == "primary")
