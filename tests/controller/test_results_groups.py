"""Results by IP multicast: who is offered them, what is on the switch, and who does without."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import cast

import grpc
import pytest

from ina.controller.app import ControllerApp
from ina.controller.config import Config, make_config
from ina.controller.embedded import Embedded
from ina.controller.errors import StoreError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.results_groups import share_if_room, take_out
from ina.controller.memory import StaticPool
from ina.controller.switches.writer import JobWriter
from ina.protocol.codec import Header, encode_header
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables.errors import SwitchError
from ina.tables.values import Entry, Group, Item
from ina.trees.endpoint import Endpoint
from ina.trees.slots import SlotRange
from tests.worlds.fakes.coordinator import Bench
from tests.worlds.fakes.sessions import RecordingSwitch
from tests.worlds.fakes.switches import alone, job_at, of_jobs, only, plan_here, plan_of, switch_of
from tests.worlds.fakes.workers import Workers, workers_of
from tests.worlds.loops import drive

GROUP = IPv4Address("239.192.0.1")
MISSING = pb2.Progress(shared_results_missing=True)
SHARED_ROW = (
    "job=1 worker=all (IP multicast)",
    "address(dst_mac=01:00:5e:40:00:01, dst_addr=239.192.0.1, dst_port=17761,"
    " way=0, way_mask=0, strips_on=0, strips_off=0)",
)
LOGGER = "ina.controller.jobs.results_groups"


@contextmanager
def controller(network: str = "239.192.0.0/24") -> Iterator[tuple[Embedded, Workers]]:
    with (
        Embedded(values=64, config={"switch": {"multicast": network}}) as embedded,
        workers_of(embedded.controller_addr) as workers,
    ):
        yield embedded, workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    with controller() as (_, workers):
        yield workers


def copies(workers: Workers) -> str:
    (action,) = [e.action for e in of_jobs(workers.show()) if e.table == "multicast group"]
    return action


def receivers(workers: Workers) -> list[tuple[str, str]]:
    return [(e.match, e.action) for e in of_jobs(workers.show()) if e.table == "receivers"]


def until_copies(workers: Workers, wanted: str) -> None:
    deadline_s = time.monotonic() + 30
    while copies(workers) != wanted:
        assert time.monotonic() < deadline_s, copies(workers)
        time.sleep(0.01)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == LOGGER]


def test_each_job_is_offered_an_address_of_its_own(workers: Workers) -> None:
    for name, host in (("a", "239.192.0.1"), ("b", "239.192.0.2")):
        reply = workers.create(name, 2)
        assert (reply.results_host, reply.results_udp_port) == (host, 17761)


def test_workers_that_listen_share_a_copy_and_the_others_do_not(workers: Workers) -> None:
    workers.create("j", 4)
    joins = [
        workers.join("j", 0, takes_shared_results=True),
        workers.join("j", 1),
        workers.join("j", 2, takes_shared_results=True),
        workers.join("j", 3, takes_shared_results=True, switch_port=1),  # said its port
    ]
    epoch = joins[0].result().epoch
    assert [join.result().shares_results for join in joins] == [True, False, True, False]
    assert copies(workers) == "replicate(1#256 1#2 1#4)"
    rows = receivers(workers)
    assert [match for match, _ in rows[:4]] == [
        f"job=1 worker={rank} (rank {rank})" for rank in range(4)
    ]
    assert rows[4:] == [SHARED_ROW]
    for rank in range(4):
        workers.leave("j", rank, epoch)
    assert not of_jobs(workers.show())


def test_without_a_network_nothing_is_offered_nor_taken() -> None:
    with controller("") as (_, workers):
        reply = workers.create("j", 2)
        assert (reply.results_host, reply.results_udp_port) == ("", 0)
        joined = workers.run_job("j", 2, takes_shared_results=True)
        assert not joined.shares_results
        assert copies(workers) == "replicate(1#1 1#2)"
        assert len(receivers(workers)) == 2
        workers.heartbeat("j", 0, joined.epoch, MISSING)  # of no meaning here
        assert copies(workers) == "replicate(1#1 1#2)"


def test_who_is_alone_behind_a_port_is_told_so(workers: Workers) -> None:
    assert not workers.run_job("j", 1, takes_shared_results=True).shares_results
    assert copies(workers) == "replicate(1#1)"


def test_a_join_of_no_job_is_refused_as_ever(workers: Workers) -> None:
    with pytest.raises(grpc.RpcError, match="no job is called 'other'"):
        workers.join("other", 0, takes_shared_results=True).result()


@contextmanager
def senders(ranks: int, switch: tuple[str, int]) -> Iterator[list[socket.socket]]:
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(ranks)]
    try:
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
            sock.connect(switch)
            sock.settimeout(30)
        yield socks
    finally:
        for sock in socks:
            sock.close()


def test_the_program_makes_one_copy_for_all_and_answers_resends_to_one() -> None:
    with (
        controller() as (embedded, workers),
        senders(3, embedded.switch.udp_address(1)) as socks,
    ):
        workers.create("j", 3)
        joins = [
            workers.join("j", rank, udp_port=sock.getsockname()[1], takes_shared_results=True)
            for rank, sock in enumerate(socks)
        ]
        joined = joins[0].result()
        job, epoch = joined.trees[0].job, joined.epoch
        for rank, sock in enumerate(socks):
            header = Header(job=job, epoch=epoch, worker=rank, value_count=64)
            sock.send(encode_header(header) + bytes(4 * 64))
        sock.send(encode_header(header) + bytes(4 * 64))  # the last one's is lost on the way
        assert sock.recv(2048)[:1]
        counted = {
            c.label: c.packets for c in workers.show().counters if c.name == "receiver_results"
        }
        assert counted == {"job j IP multicast": 1, "job j rank 0": 0, "job j rank 1": 0} | {
            "job j rank 2": 1
        }
        assert {c.packets for c in workers.show().counters if c.name == "job_unaddressed"} == {0}


def test_who_gets_no_multicast_gets_its_own_and_no_entry_is_left(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    epoch = workers.run_job("j", 4, takes_shared_results=True).epoch
    assert copies(workers) == "replicate(1#256)"
    for _ in range(3):
        workers.heartbeat("j", 3, epoch, MISSING)
    until_copies(workers, "replicate(1#256 1#4)")
    assert receivers(workers)[4:] == [SHARED_ROW]
    assert warnings(caplog) == [
        "job 'j': results by IP multicast at 239.192.0.1 do not reach rank 3: it gets its own"
    ]
    workers.heartbeat("j", 1, epoch, MISSING)
    until_copies(workers, "replicate(1#256 1#2 1#4)")
    workers.heartbeat("j", 2, epoch, MISSING)  # which leaves one alone
    until_copies(workers, "replicate(1#1 1#2 1#3 1#4)")
    while len(receivers(workers)) > 4:  # it goes after the group
        time.sleep(0.01)
    assert len(warnings(caplog)) == 3
    for rank in range(4):
        workers.heartbeat("j", rank, epoch, MISSING)
    assert len(warnings(caplog)) == 3  # rank 0 got results of its own: nothing failed
    assert copies(workers) == "replicate(1#1 1#2 1#3 1#4)"
    for rank in range(4):
        workers.leave("j", rank, epoch)
    assert not of_jobs(workers.show())


def test_others_may_have_left(workers: Workers) -> None:
    epoch = workers.run_job("j", 3, takes_shared_results=True).epoch
    workers.leave("j", 0, epoch)
    workers.heartbeat("j", 2, epoch, MISSING)
    until_copies(workers, "replicate(1#256 1#3)")
    with pytest.raises(grpc.RpcError, match="has ended"):
        workers.heartbeat("j", 0, epoch, MISSING)
    assert copies(workers) == "replicate(1#256 1#3)"


def stored_at(path: Path, switch: SoftSwitch) -> Config:
    settings = {"grpc_addr": switch.grpc_addr, "values": 64, "multicast": "239.192.0.0/24"}
    document = {"listen": "127.0.0.1:0", "switch": settings, "store": {"path": str(path)}}
    return make_config(document, "test")


def test_a_restart_keeps_who_shares_and_who_does_not(tmp_path: Path) -> None:
    def begin(address: str) -> list[str]:
        with workers_of(address) as workers:
            epoch = workers.run_job("j", 3, takes_shared_results=True).epoch
            workers.heartbeat("j", 1, epoch, MISSING)
            until_copies(workers, "replicate(1#256 1#2)")
            return [str(entry) for entry in of_jobs(workers.show())]

    async def scenario() -> None:
        with SoftSwitch([UdpPort(1)]) as switch:
            config = stored_at(tmp_path / "s.db", switch)
            async with ControllerApp(config) as app:
                before = await asyncio.to_thread(begin, app.listen_addr)
            async with ControllerApp(config) as app:
                assert [str(entry) for entry in of_jobs(await app.show())] == before
                assert app._supervisor is not None
                assert app._supervisor.term is not None
                coordinator = app._supervisor.term.coordinator
                (job,) = coordinator.jobs()
                groups = [job.members[rank].results_group for rank in range(3)]
                assert groups == [GROUP, None, GROUP]
                coordinator.give_own_results(job, 0)
            # Whether the switch had taken that or not, the next one finds it in the store.
            async with ControllerApp(config) as app:
                entries = of_jobs(await app.show())
                (group,) = [e.action for e in entries if e.table == "multicast group"]
                assert group == "replicate(1#1 1#2 1#3)"
                assert sum(entry.table == "receivers" for entry in entries) == 3
                assert not any(entry.foreign for entry in entries)

    drive(scenario())


class Regrouped(RecordingSwitch):
    """Notes modified groups and removed rows, and refuses some of that."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0
        self.modifying = asyncio.Event()
        self.modifying.set()

    async def modify(self, items: Iterable[Item]) -> None:
        await self.modifying.wait()
        for item in items:
            assert isinstance(item, Group)
            self._note(f"copies {' '.join(str(instance) for _, instance in item.replicas)}")

    async def delete(self, items: Iterable[Item]) -> None:
        for item in items:
            assert isinstance(item, Entry)
            self._note(f"delete receiver {dict(item.match)['worker']}")

    def _note(self, what: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise SwitchError("switch s: no answer")
        self.log.append(what)


async def sharing(world_size: int) -> tuple[Bench, Regrouped, Job]:
    bench = Bench()
    bench.switch = switch = Regrouped()
    only(bench.coordinator).writer = cast(JobWriter, switch)
    await bench.coordinator.create(JobSpec("j", world_size), 0.0)
    joins = [
        bench.coordinator.join(
            "j",
            rank,
            Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), 1, results_group=GROUP),
            20.0,
        )
        for rank in range(world_size)
    ]
    job, *_ = await asyncio.gather(*joins)
    switch.log.clear()
    return bench, switch, job


async def idle(bench: Bench) -> None:
    while bench.coordinator._background._tasks:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_the_row_goes_when_no_copy_needs_it_though_the_switch_does_not_answer(
    refusals: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        bench, switch, job = await sharing(2)
        switch.refusals = refusals
        bench.coordinator.give_own_results(job, 0)
        bench.coordinator.give_own_results(job, 0)
        await idle(bench)
        assert switch.log == ["copies 1 2", "delete receiver 255"]
        assert plan_of(bench.coordinator, "j").groups[0].replicas == ((1, 1), (1, 2))
        bench.coordinator.give_own_results(job, 1)  # it had its own
        await idle(bench)
        assert len(switch.log) == 2
        assert len(warnings(caplog)) == 1

    caplog.set_level(logging.WARNING, LOGGER)
    drive(scenario())


async def test_a_row_that_stays_is_tried_again_behind_the_group() -> None:
    bench, switch, job = await sharing(2)
    delete = switch.delete

    async def once(items: Iterable[Item]) -> None:
        switch.delete = delete  # type: ignore[method-assign]
        raise SwitchError("switch s: no answer")

    switch.delete = once  # type: ignore[method-assign]
    bench.coordinator.give_own_results(job, 0)
    await idle(bench)
    assert switch.log == ["copies 1 2", "copies 1 2", "delete receiver 255"]


async def test_a_job_that_ends_meanwhile_is_removed_and_not_written_to() -> None:
    bench, switch, job = await sharing(3)
    switch.modifying.clear()
    bench.coordinator.give_own_results(job, 0)  # is being written
    await asyncio.sleep(0)
    bench.coordinator.give_own_results(job, 1)  # waits for its turn
    bench.coordinator.lose(job, [2], "rank 2 has died")
    bench.coordinator.give_own_results(job, 2)
    switch.modifying.set()
    await bench.until_empty()
    await idle(bench)
    assert switch.log[-1] == "remove"
    bench.coordinator.give_own_results(job, 2)
    assert job.state is JobState.GONE
    assert switch.log[-1] == "remove"


async def test_a_job_that_is_gone_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    bench, switch, job = await sharing(2)
    switch.refusals = 1
    bench.coordinator.give_own_results(job, 0)
    while switch.refusals:
        await asyncio.sleep(0)
    await bench.coordinator.evict("j", "room is needed")
    await idle(bench)
    assert switch.log == ["remove"]
    assert not [r for r in caplog.records if r.name == "ina.controller.retry" and r.exc_info]
    assert [r.levelname for r in caplog.records if r.name == "ina.controller.retry"] == [
        "WARNING",  # the switch did not answer
        "WARNING",  # and the matter is settled
    ]


async def test_a_job_without_anything_on_the_switch_is_left_alone() -> None:
    bench = Bench()
    job = await bench.coordinator.create(JobSpec("j", 2), 0.0)
    job.members[0] = Endpoint(Peer(IPv4Address("10.0.0.1"), 4000), 1, results_group=GROUP)
    bench.coordinator.give_own_results(job, 0)
    assert job.members[0].results_group == GROUP
    assert bench.switch.log == []


async def test_what_the_store_does_not_take_is_not_written_to_the_switch() -> None:
    bench, switch, job = await sharing(2)
    bench.store.claim("another")
    with pytest.raises(StoreError, match="has claimed it"):
        bench.coordinator.give_own_results(job, 0)
    await idle(bench)
    assert switch.log == []


@pytest.mark.parametrize(("others", "shares"), [(123, True), (124, False)])
def test_where_rows_are_scarce_nobody_shares(others: int, shares: bool) -> None:
    job = job_at("j", 1, 32, SlotRange(0, 2, 2), 0.0)
    for rank in range(32):
        job.members[rank] = Endpoint(
            Peer(IPv4Address("10.0.0.1"), 4000 + rank), 1, results_group=GROUP
        )
    rest = [job_at(f"{n}", 2 + n, 32, SlotRange(0, 2, 2), 0.0) for n in range(others)]
    here = switch_of(Registry(alone(StaticPool(8, 2)), EpochCounter(0), range(1, 2)), None)
    share_if_room(job, here, [job, *rest])
    assert {at.results_group for at in job.members.values()} == {GROUP if shares else None}


async def test_a_successor_changes_the_group_before_the_row_goes() -> None:
    bench, switch, job = await sharing(2)
    plan = plan_of(bench.coordinator, "j")
    switch.items = [item for stage in plan.stages for item in stage]
    switch.mark = job.epoch
    assert take_out(job, 0, plan)  # as its predecessor did, and stored
    only(bench.coordinator).replan(job, only(bench.coordinator).plan(job), plan_here(job))
    await bench.coordinator.reconcile(only(bench.coordinator), fresh=False)
    assert switch.log == ["copies 1 2", "delete receiver 255"]
