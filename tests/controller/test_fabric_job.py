"""Jobs over soft switches that reach each other by their UDP ports; no namespaces, no root."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from ina.controller.app import ControllerApp
from ina.errors import InaError
from ina.host import Session, SwitchLostError, WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.processes.two_racks import LONELY, RACKS, TIMEOUT_S, ask, together, two_racks


async def test_two_racks_sum_exactly_and_every_node_counts() -> None:
    hosts = [*RACKS, "127.0.2.1"]
    rng = np.random.default_rng(7)
    parts = rng.integers(-(1 << 20), 1 << 20, (len(hosts), 3000), np.int32)
    async with two_racks() as (app, _):
        shown: list[pb2.ShowFabricReply] = []
        loop = asyncio.get_running_loop()

        def work(session: Session, rank: int) -> bool:
            equal = bool((session.all_reduce(parts[rank]) == parts.sum(0, np.int32)).all())
            if rank == 0:
                shown.append(asyncio.run_coroutine_threadsafe(ask(app), loop).result(TIMEOUT_S))
            return equal and bool((session.all_reduce(parts[rank]) == parts.sum(0)).all())

        assert await together(app, hosts, work) == [True] * len(hosts)
        ((job,), after) = shown[0].jobs, await ask(app)
    assert [(it.switch, it.parent, list(it.ranks)) for it in job.nodes] == [
        ("spine", "", []),
        ("leaf1", "spine", [0, 1]),
        ("leaf2", "spine", [2, 3]),
    ]
    chunks = -(-3000 // 64)
    spine, *leaves = job.nodes
    assert spine.results >= chunks
    assert spine.contributions >= 2 * chunks
    for leaf in leaves:
        assert leaf.contributions >= 2 * chunks
        assert leaf.passed_down >= chunks
    assert not after.jobs
    assert {switch.slots_used for switch in after.switches} == {0}  # of every switch


async def test_a_rack_alone_is_summed_by_its_own_switch() -> None:
    async with two_racks() as (app, _):

        def work(session: Session, rank: int) -> int:
            return int(session.all_reduce(np.array([rank + 1], np.int32))[0])

        assert await together(app, ["127.0.1.1", "127.0.1.2"], work) == [3, 3]


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        (
            ["127.0.1.1", LONELY],
            "rank 0 is behind switch 'leaf1' and rank 1 behind 'island': no path of links joins",
        ),
        (["127.0.1.1", "127.0.8.8"], "is behind no switch"),
    ],
)
async def test_who_cannot_be_placed_is_told(hosts: list[str], says: str) -> None:
    async with two_racks() as (app, _):

        def work(session: Session, rank: int) -> None:
            raise AssertionError("it has joined")

        if "127.0.8.8" in hosts:  # the others would wait for it
            hosts = hosts[1:]
        answers = await together(app, hosts, work)
    assert all(isinstance(answer, InaError) and says in str(answer) for answer in answers), answers


async def test_a_switch_out_of_reach_is_told_as_that() -> None:
    async with two_racks() as (app, switches):
        assert [it.unreachable for it in (await ask(app)).switches] == ["", "", "", ""]
        switches["leaf2"].stop()

        async def until_told() -> pb2.ShowFabricReply:
            while not (shown := await ask(app)).switches[1].unreachable:
                await asyncio.sleep(0.05)
            return shown

        shown = await asyncio.wait_for(until_told(), TIMEOUT_S)
        assert [bool(it.unreachable) for it in shown.switches] == [False, True, False, False]


async def test_a_leaf_that_restarts_ends_the_jobs_that_use_it_and_no_other() -> None:
    async with two_racks() as (app, switches):
        leaf = switches["leaf2"]
        grpc_addr, (host, port) = leaf.grpc_addr, leaf.udp_address(1)

        def sum_once(session: Session) -> int:
            return int(session.all_reduce(np.array([1], np.int32))[0])

        near, wide = await sessions(app, ["127.0.1.1", "127.0.1.2"], ["127.0.1.1", "127.0.2.1"])
        assert await at_once(sum_once, [*near, *wide]) == [2, 2, 2, 2]
        leaf.stop()
        with SoftSwitch([UdpPort(1, host, port)], grpc_addr=grpc_addr):
            answers = await at_once(sum_once, wide)
            said = "switch 'leaf2' has lost its registers"
            assert [type(it) for it in answers] == [SwitchLostError] * 2, answers
            assert all(said in str(answer) for answer in answers), answers
            assert await at_once(sum_once, near) == [2, 2]
            await at_once(Session.close, [*near, *wide])


async def sessions(app: ControllerApp, *jobs: list[str]) -> list[list[Session]]:
    """Of each job, by the hosts of its ranks."""

    def join(name: str, rank: int, hosts: list[str]) -> Session:
        address = app.listen_addr
        return Session.join(
            address, name, rank, len(hosts), WorkerOptions(host=hosts[rank], timeout_s=TIMEOUT_S)
        )

    made = []
    for number, hosts in enumerate(jobs):
        calls = (asyncio.to_thread(join, f"job{number}", rank, hosts) for rank in range(len(hosts)))
        made.append(list(await asyncio.gather(*calls)))
    return made


async def at_once(work: Callable[[Session], object], each: list[Session]) -> list[object]:
    """What it returned or raised, for each of them."""
    calls = (asyncio.to_thread(work, session) for session in each)
    return list(await asyncio.gather(*calls, return_exceptions=True))
