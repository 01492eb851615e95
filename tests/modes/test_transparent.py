"""Mode transparent: rows by flow and lane, of a ring; no host sends its packets yet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any, cast

import pytest

from ina import modes
from ina.controller.job import Job, JobSpec
from ina.controller.switches.plan import JobPlan, plan_job
from ina.modes.site import Asking, Site
from ina.p4 import compiled, names
from ina.p4.builds import builds_of
from ina.p4.catalogue import PROGRAMS
from ina.protocol.addresses import mac_of
from ina.protocol.bth import Bth, Opcode
from ina.protocol.codec import Header, decode, encode
from ina.protocol.peer import Peer
from ina.protocol.roce import RoceFrame, decode_frame, encode_frame
from ina.protocol.spec import Flag, Kind
from ina.tables.entities import entities_of
from ina.tables.values import Entry, Group
from ina.testing.model_device import ModelDevice
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, Tree
from tests.worlds.fakes.switches import placed_over

MODE = modes.of(names.TRANSPARENT)
ASKING = Asking("train", 0, (), None, True, cast(Any, None))


def summed_at(*nodes: Node) -> Forest:
    return forest_of(Tree(nodes))


def test_hosts_are_not_said_to_speak_it() -> None:
    assert names.TRANSPARENT not in modes.names()
    assert MODE in modes.every()


def test_which_switches_sum_its_jobs() -> None:
    of_it = [can for it, can in PROGRAMS.items() if it.mode == names.TRANSPARENT]
    assert [MODE.is_written_to(can) for can in of_it] == [True] * 3
    assert [it.name for it in modes.every() if modes.sums(it, MODE.name, shares_slots=False)] == [
        MODE.name
    ]
    assert not modes.sums(MODE, names.ROCE, shares_slots=False)


def test_one_switch_sums() -> None:
    alone = summed_at(Node("leaf1", (0, 1)))
    assert MODE.forest(ASKING, alone, cast(Site, None)) is alone
    racks = summed_at(
        Node("spine", (), ("leaf1", "leaf2"), (1, 2)),
        Node("leaf1", (0,), parent="spine", parent_port=9),
        Node("leaf2", (1,), parent="spine", parent_port=9),
    )
    with pytest.raises(JobRequestError) as refused:
        MODE.forest(ASKING, racks, cast(Site, None))
    assert str(refused.value) == (
        "job 'train': mode 'transparent' sums at one switch that all workers are behind, and these"
        " want 3: spine, leaf1, leaf2"
    )


PORTS = (2, 1, 2, 1)
"""By rank."""
NEXT = {1: 3, 3: 0, 0: 2, 2: 1}
"""Ranks behind one port are neighbours."""
EPOCH, VALUES, LANES = 5, 64, 4
RINGS = IPv4Network("10.128.0.0/19")
FIRST_PSN = 0xFF_FFFF


def pair(rank: int, lane: int, *, sends: bool) -> int:
    return 0x100 * (rank + 1) + lane + (0 if sends else 0x80)


def address(rank: int) -> IPv4Address:
    return IPv4Address("10.128.0.224") + rank  # of job number 7


def job(size: int = 4) -> Job:
    forest = summed_at(Node("leaf", tuple(range(size))))
    memory = {"leaf": SlotRange(64, 2 * LANES, 2 * LANES)}
    made = Job(JobSpec("j", size), 7, 0.0, placed_over(forest, memory, 7, EPOCH, mode=MODE.name))
    for rank, port in enumerate(PORTS[:size]):
        pairs = [pair(rank, lane, sends=it) for it in (True, False) for lane in range(LANES)]
        peer = Peer(IPv4Address("192.168.0.1") + rank, 4000 + rank, ring_pairs=tuple(pairs))
        made.members[rank] = Endpoint(peer, port)
    return made


def plan(size: int = 4) -> JobPlan:
    return plan_job(job(size), "leaf", rings=RINGS)


def of_table(table: str, size: int = 4) -> list[Entry]:
    return [it for it in plan(size).items if isinstance(it, Entry) and it.table == table]


@pytest.mark.parametrize("values", builds_of(names.TRANSPARENT))
def test_its_program_takes_the_rows_of_a_job(values: int) -> None:
    entities = entities_of(compiled(values, names.TRANSPARENT).p4info)
    for item in plan().items:
        entities.encode(item)
    assert all(
        "job" in {**dict(it.match), **dict(it.params)}
        for table in names.job_tables(names.TRANSPARENT)
        for it in of_table(table)
    )  # whoever reads them back knows whose they are


def test_a_ring_enters_and_leaves_each_port_once() -> None:
    flows = {it.exact("worker"): it for it in of_table(names.RECEIVERS)}
    assert {rank: flow.param("next_worker") for rank, flow in flows.items()} == NEXT
    (group,) = [it for it in plan().items if isinstance(it, Group)]
    assert sorted(group.replicas) == sorted((PORTS[NEXT[it]], it + 1) for it in range(4))
    crossing = [it for it in range(4) if PORTS[it] != PORTS[NEXT[it]]]
    assert len(crossing) == 2


def test_each_lane_has_rows_of_its_own() -> None:
    for table in (names.MEMBERS, names.RECEIVERS, names.REPLIES):
        assert len({it.match for it in of_table(table)}) == 4 * LANES
    assert [len(them) for them in plan().members.values()] == [LANES] * 4


@pytest.mark.parametrize("size", [1, 2])
def test_small_rings(size: int) -> None:
    rows = of_table(names.RECEIVERS, size)
    assert {it.exact("worker"): it.param("next_worker") for it in rows} == {
        rank: (rank + 1) % size for rank in range(size)
    }


@pytest.fixture
def switch() -> ModelDevice:
    """With a job's rows, as the controller makes them; no way through it is known."""
    device = ModelDevice(names.TRANSPARENT)
    device.reset(VALUES)
    networks = {"rings": (RINGS,), "bystanders": ()}
    device.insert([*MODE.standing((), networks), *plan().items])
    return device


def sent(rank: int, seq: int, values: list[int]) -> tuple[int, bytes]:
    slot, lane = seq % (2 * LANES), seq % LANES
    header = Header(job=7, epoch=EPOCH, worker=rank, slot=slot, seq=seq, value_count=VALUES)
    number = (FIRST_PSN + seq // LANES) % (1 << 24)
    bth = Bth(Opcode.RC_SEND_ONLY, pair(NEXT[rank], lane, sends=False), number, ack_request=1)
    frame = RoceFrame(
        bth, encode(header, values), int(address(rank)), int(address(NEXT[rank])), src_udp=0xC001
    )
    return PORTS[rank], encode_frame(frame)


@pytest.mark.parametrize("seq", [0, 1, 6])
def test_each_gets_the_sum_from_the_one_before_it(seq: int, switch: ModelDevice) -> None:
    for rank in range(3):
        assert switch.process([sent(rank, seq, [rank] * VALUES)]) == []
    left = switch.process([sent(3, seq, [3] * VALUES)])
    assert len(left) == 4
    by_receiver = {decode_frame(data).dst_ipv4: (port, decode_frame(data)) for port, data in left}
    for rank, to in NEXT.items():
        port, frame = by_receiver[int(address(to))]
        header, values = decode(frame.payload)
        assert (port, frame.src_ipv4) == (PORTS[to], int(address(rank)))
        assert (frame.src_mac, frame.dst_mac) == (mac_of(address(rank)), mac_of(address(to)))
        number = (FIRST_PSN + seq // LANES) % (1 << 24)
        of_lane = pair(to, seq % LANES, sends=False)
        assert frame.bth == Bth(Opcode.RC_SEND_ONLY, of_lane, number, ack_request=1)
        assert (header.kind, header.worker, header.contributors) == (Kind.RESULT, to, 0b1111)
        assert set(values.tolist()) == {6}
    ((port, again),) = switch.process([sent(2, seq, [9] * VALUES)])
    header, values = decode(decode_frame(again).payload)
    assert (port, header.worker, header.flags) == (PORTS[1], 1, Flag.REPLAY)
    assert set(values.tolist()) == {6}


def test_acknowledgements_go_back_and_nowhere_else(switch: ModelDevice) -> None:
    for rank, to in NEXT.items():
        for lane in range(LANES):
            bth = Bth(Opcode.RC_ACKNOWLEDGE, pair(rank, lane, sends=True), 3)
            said = RoceFrame(bth, b"\x1f\0\0\1", int(address(to)), int(address(rank)), 0xC001)
            ((port, data),) = switch.process([(PORTS[to], encode_frame(said))])
            got = decode_frame(data)
            assert (port, got.bth, got.payload) == (PORTS[rank], bth, said.payload)
            assert (got.src_mac, got.dst_mac) == (mac_of(address(to)), mac_of(address(rank)))
            assert switch.process([(PORTS[to] + 5, encode_frame(said))]) == []
