"""The southbound side against a real soft switch: order, read-back, restart, election, loss."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from typing import Any, cast

import pytest
from finsy.proto import p4r
from msgspec.structs import replace

from ina.controller.app import ControllerApp
from ina.controller.config import Config, make_config
from ina.controller.errors import ListenError
from ina.controller.job import Job
from ina.controller.switches.plan import FIRST_GROUP
from ina.controller.switches.reconcile import Difference, compare
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import compiled, names
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables.errors import SwitchError
from ina.tables.grpc_wire import GrpcWire
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.session import SwitchSession
from ina.tables.values import Entry, Group, Item
from ina.tables.wire import TableUpdate
from ina.trees.endpoint import Endpoint
from ina.trees.slots import SlotRange
from tests.controller.proxy import Proxy
from tests.worlds.fakes.switches import job_at, of_jobs, plan_here
from tests.worlds.fakes.workers import workers_of
from tests.worlds.loops import drive


@pytest.fixture
def switch() -> Iterator[SoftSwitch]:
    with SoftSwitch([UdpPort(1)]) as running:
        yield running


def config_for(switch: SoftSwitch, listen: str = "127.0.0.1:0") -> Config:
    settings = {"grpc_addr": switch.grpc_addr, "values": 64}
    return make_config({"listen": listen, "switch": settings}, "test")


def two_workers(epoch: int) -> Job:
    job = job_at("j", 7, 2, SlotRange(0, 64, 64), 0.0, epoch=epoch)
    for rank in range(2):
        job.members[rank] = Endpoint(Peer(IPv4Address("127.0.0.1"), 4000 + rank), 1)
    return job


async def connect(switch: SoftSwitch, values: int, election_id: int) -> P4RuntimeSession:
    program = compiled(values)
    return await P4RuntimeSession.connect(switch.grpc_addr, 1, program, election_id=election_id)


async def prepared(switch: SoftSwitch, election_id: int = 1) -> tuple[SwitchWriter, int | None]:
    writer = SwitchWriter(await connect(switch, 64, election_id))
    await writer.session.set_pipeline()
    mark = (await writer.read_state()).mark
    await writer.put_mark(mark or 0, mark)
    return writer, mark


class OrderKeeper:
    """A session; notes the tables in the order of writing."""

    def __init__(self, session: SwitchSession) -> None:
        self._session = session
        self.log: list[str] = []
        self.calls = 0

    def _note(self, what: str, items: Sequence[Item]) -> None:
        self.calls += 1
        for item in items:
            self.log.append(f"{what} {item.table if isinstance(item, Entry) else 'group'}")

    async def insert(self, items: Sequence[Item]) -> None:
        self._note("insert", items)
        await self._session.insert(items)

    async def delete(self, items: Sequence[Item]) -> None:
        self._note("delete", items)
        await self._session.delete(items)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


async def test_members_go_in_last_and_out_first(switch: SoftSwitch) -> None:
    writer, _ = await prepared(switch)
    keeper = OrderKeeper(writer.session)
    writer.session = cast(SwitchSession, keeper)
    plan = plan_here(two_workers(5))
    await writer.install(plan, (7,), 5)
    assert keeper.log[-2:] == [f"insert {names.MEMBERS}"] * 2
    assert keeper.log[-3] == f"insert {names.JOBS}"
    keeper.log.clear()
    await writer.remove(plan)
    assert keeper.log[:2] == [f"delete {names.MEMBERS}"] * 2
    assert keeper.log[2] == f"delete {names.JOBS}"
    await keeper.close()


async def test_what_a_job_has_goes_in_a_message_a_table(switch: SoftSwitch) -> None:
    """A switch may be far away, and a job has a hundred entries."""

    writer, _ = await prepared(switch)
    keeper = OrderKeeper(writer.session)
    writer.session = cast(SwitchSession, keeper)
    plan = plan_here(two_workers(5))
    items = [item for stage in plan.stages for item in stage]
    await writer.insert(items)
    order = [line for line, _ in itertools.groupby(keeper.log)]
    assert keeper.calls == len(order) < len(items)
    assert set((await writer.read_state()).items) >= set(items)
    keeper.calls = 0
    await writer.delete(reversed(items))
    assert keeper.calls == len(order)
    assert not set((await writer.read_state()).items) & set(items)
    await keeper.close()


async def test_a_failed_install_leaves_nothing(switch: SoftSwitch) -> None:
    writer, _ = await prepared(switch)
    plan = plan_here(two_workers(5))
    in_the_way = replace(plan.members[1][0], params=(("worker_bit", 4),))
    await writer.session.insert([in_the_way])
    with pytest.raises(
        SwitchError, match=r"switch 127.0.0.1:\d+ device 1: .*members: there is an entry"
    ):
        await writer.install(plan, (7,), 5)
    assert [entry.table for entry in await writer.read_entries()] == [names.JOBS]  # the mark
    assert await writer.read_groups() == []
    await writer.session.close()


async def test_what_was_installed_is_read_back_and_what_is_not_ours_is_not(
    switch: SoftSwitch,
) -> None:
    first, mark = await prepared(switch)
    assert mark is None
    plan = plan_here(two_workers(5))
    await first.install(plan, (7,), 5)
    other = Entry(names.DMAC, (("dst_mac", 9),), names.FORWARD, (("port", 1),))
    await first.session.insert([other])
    await first.session.close()
    second, mark = await prepared(switch)
    assert mark == 5
    state = await second.read_state()
    nothing_to_do = compare({7: [item for stage in plan.stages for item in stage]}, state)
    assert nothing_to_do == Difference()
    await second.delete(compare({7: []}, state).extra)
    assert (await second.read_state()).items == ()
    assert sorted(entry.table for entry in await second.read_entries()) == [
        names.JOBS,
        names.DMAC,
    ]
    await second.session.close()


async def test_only_one_controller_is_primary(switch: SoftSwitch) -> None:
    primary, _ = await prepared(switch, election_id=5)
    with pytest.raises(SwitchError, match=r"another controller is primary \(election id 5\)"):
        await P4RuntimeSession.connect(switch.grpc_addr, 1, election_id=4)
    await primary.read_groups()
    await primary.session.close()


async def test_a_demoted_controller_stops_writing(switch: SoftSwitch) -> None:
    former, _ = await prepared(switch, election_id=5)
    usurper, _ = await prepared(switch, election_id=6)
    with pytest.raises(SwitchError):
        await former.install(plan_here(two_workers(9)), (7,), 9)
    assert [entry.table for entry in await usurper.read_entries()] == [names.JOBS]
    await former.session.close()
    await usurper.session.close()


async def test_a_switch_that_is_not_there() -> None:
    with pytest.raises(SwitchError, match=r"switch 127.0.0.1:1 device 1: ") as caught:
        await P4RuntimeSession.connect("127.0.0.1:1", 1, timeout_s=0.5)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["a write", "a read", "a program"])
async def test_a_call_whose_session_is_closed_meanwhile_fails(
    switch: SoftSwitch, what: str
) -> None:
    """It is no cancelled task: who started a job with it has to hear that it failed."""

    async with Proxy(switch.grpc_addr) as proxy:
        session = await P4RuntimeSession.connect(proxy.address, 1, compiled(64))
        await session.set_pipeline()
        proxy.silent = True
        group = Group(1, ((1, 0),))
        calls: dict[str, Any] = {
            "a write": lambda: session.insert([group]),
            "a read": session.read_groups,
            "a program": lambda: session.set_pipeline(anew=True),
        }
        call = asyncio.ensure_future(calls[what]())
        await asyncio.sleep(0.1)
        await session.close()
        with pytest.raises(SwitchError, match="the session is closed"):
            await call


async def test_another_device_id_is_refused(switch: SoftSwitch) -> None:
    with pytest.raises(SwitchError, match=r"device 2: "):
        await P4RuntimeSession.connect(switch.grpc_addr, 2)


async def test_a_switch_that_stops_is_an_error_of_the_next_call(switch: SoftSwitch) -> None:
    writer, _ = await prepared(switch)
    await asyncio.to_thread(switch.stop)
    with pytest.raises(SwitchError, match=r"switch 127.0.0.1:\d+ device 1: ") as caught:
        await writer.install(plan_here(two_workers(5)), (7,), 5)
    assert "\n" not in str(caught.value)
    await writer.session.close()


async def test_a_listen_address_in_use(switch: SoftSwitch) -> None:
    async with ControllerApp(config_for(switch)) as first:
        with pytest.raises(ListenError, match=f"cannot listen on {first.listen_addr}: Address"):
            async with ControllerApp(config_for(switch, first.listen_addr)):
                pass


async def test_a_pipeline_is_set_only_if_another_runs(switch: SoftSwitch) -> None:
    writer, _ = await prepared(switch)
    assert not await writer.session.set_pipeline()
    other = await connect(switch, 256, 2)
    assert await other.set_pipeline()
    await other.close()
    await writer.session.close()


def test_groups_are_deleted_before_another_pipeline_is_set(
    switch: SoftSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BMv2 keeps replicating old groups, though P4Runtime no longer lists them."""
    deleted: list[int] = []
    update = GrpcWire._update

    async def noted(
        wire: GrpcWire, change: TableUpdate, entities: Sequence[p4r.Entity], as_id: int
    ) -> None:
        assert change is TableUpdate.DELETE
        groups = (it.packet_replication_engine_entry.multicast_group_entry for it in entities)
        deleted.extend(group.multicast_group_id for group in groups)
        await update(wire, change, entities, as_id)

    async def scenario() -> None:
        writer, _ = await prepared(switch)
        await writer.install(plan_here(two_workers(1)), (7,), 1)
        other = await connect(switch, 256, 2)
        monkeypatch.setattr(GrpcWire, "_update", noted)
        assert await other.set_pipeline()
        await other.close()
        await writer.session.close()

    drive(scenario())
    assert deleted == [FIRST_GROUP + 7]


def test_a_controller_without_a_store_leaves_what_it_does_not_know_alone(
    switch: SoftSwitch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        replies = []
        for turn in range(2):
            async with ControllerApp(config_for(switch)) as controller:
                shown = await controller.show()
                assert (len(of_jobs(shown)), shown.slots_used) == (6 * turn, 512 * turn)
                replies.append(await asyncio.to_thread(one_job, controller.listen_addr))
                assert len(of_jobs(await controller.show())) == 6 * (turn + 1)
        assert [reply.epoch for reply in replies] == [1, 2]
        assert [reply.trees[0].job for reply in replies] == [1, 2]

    def one_job(address: str) -> pb2.JoinReply:
        with workers_of(address) as workers:
            return workers.run_job("j", 2)

    drive(scenario())
    assert "6 entries that no job in the store owns (job numbers 1)" in caplog.text


async def test_hosts_behind_other_ports_are_installed_as_configured(switch: SoftSwitch) -> None:
    document = {
        "listen": "127.0.0.1:0",
        "switch": {"grpc_addr": switch.grpc_addr, "values": 64, "data_port": 4},
        "host": [
            {"address": "10.0.0.1", "port": 2, "mac": "0a:00:00:00:00:09"},
            {"address": "10.0.0.2", "port": 3},
        ],
    }

    def one_job(address: str) -> None:
        with workers_of(address) as workers:
            workers.create("j", 3)
            hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
            for join in [workers.join("j", rank, host=host) for rank, host in enumerate(hosts)]:
                join.result()

    async with ControllerApp(make_config(document, "test")) as controller:
        await asyncio.to_thread(one_job, controller.listen_addr)
        entries = of_jobs(await controller.show())
    ports = [entry.match.split()[0] for entry in entries if entry.table == "members"]
    assert ports == ["ingress_port=2", "ingress_port=3", "ingress_port=4"]
    macs = [entry.action.split(",")[0] for entry in entries if entry.table == "receivers"]
    assert macs == [
        "address(dst_mac=0a:00:00:00:00:09",
        "address(dst_mac=02:00:0a:00:00:02",
        "address(dst_mac=02:00:0a:00:00:03",
    ]
    (group,) = [entry.action for entry in entries if entry.table == "multicast group"]
    assert group == "replicate(2#1 3#2 4#3)"
