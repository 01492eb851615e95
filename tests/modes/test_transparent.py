"""Mode transparent: rows by connection, of a ring, and what its workers are told."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any, cast

import pytest

from ina import modes
from ina.controller.config import make_config
from ina.controller.errors import ConfigError
from ina.controller.job import Job, JobSpec
from ina.controller.service.endpoints import DataPath
from ina.controller.switches.plan import plan_job
from ina.modes.site import Asking, Site
from ina.p4 import compiled, names
from ina.p4.builds import builds_of
from ina.protocol.bth import Bth, Opcode
from ina.protocol.codec import Header, decode, encode
from ina.protocol.peer import Peer
from ina.protocol.roce import RoceFrame, decode_frame, encode_frame, ring_psn
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


def test_a_switch_takes_its_packets_alone() -> None:
    assert names.TRANSPARENT in modes.names()
    for it in modes.every():
        takes = modes.sums(it, names.TRANSPARENT, shares_slots=False)
        assert takes == (it is MODE)
    assert not modes.sums(MODE, names.ROCE, shares_slots=False)


@pytest.mark.parametrize(
    ("rings", "said"),
    [
        ("10.0.0.0/20", "10.0.0.0/20 has 4096 addresses: jobs may have 8192"),
        ("10.0.0.1/19", "is not an IPv4 network"),
        ("224.0.0.0/8", "is no network of hosts"),
    ],
)
def test_which_networks_rings_may_have(rings: str, said: str) -> None:
    document = {"switch": {"mode": names.TRANSPARENT}, "jobs": {"mode": names.TRANSPARENT}}
    switch = make_config(document, "test").switch
    assert (switch.rings, switch.values, switch.data_udp_port) == ("10.128.0.0/19", 248, 4791)
    document["switch"]["rings"] = rings
    with pytest.raises(ConfigError, match=said):
        make_config(document, "test")
    with pytest.raises(ConfigError, match=r"rings: only with mode 'transparent'"):
        make_config({"switch": {"rings": "10.0.0.0/19"}}, "test")


def test_a_device_keeps_its_address_of_rings() -> None:
    """They are behind those that workers without one are given."""
    document = {"switch": {"mode": names.TRANSPARENT}, "jobs": {"mode": names.TRANSPARENT}}
    usual = make_config(document, "test")
    made, own = job(), IPv4Address("10.128.32.7")
    for rings, first, last, gets in (
        ("10.128.0.0/19", "", "", "10.128.0.225"),
        ("10.128.0.0/18", "10.128.32.0", "10.128.63.254", "10.128.32.7"),
    ):
        document["switch"]["rings"] = rings
        data = DataPath(usual, make_config(document, "test").switch, lambda ref: 1)
        assert data.device_rings(made) == (first, last)
        assert str(data.ring_address(made, 1, own)) == gets
        assert str(data.ring_address(made, 1, IPv4Address("10.0.0.1"))) == "10.128.0.225"


def test_workers_are_told_what_the_rows_have() -> None:
    """Each sends to where its flow's row of members has it, and says what came to who sends."""
    made = job()
    (part,) = made.mapping.parts
    rings = {rank: MODE.ring(part, made.members, rank) for rank in range(4)}
    for row in of_table(names.MEMBERS):
        ring = rings[row.exact("worker")]
        assert ring is not None
        assert row.exact("src_addr") == int(ring.own)
        assert row.exact("dst_addr") == int(ring.next)
        assert ring.next_pairs[row.param("queue")] == row.exact("dest_qp")
    replies = {(row.exact("src_addr"), row.exact("dst_addr"), row.exact("dest_qp"))
               for row in of_table(names.REPLIES)}  # fmt: skip
    for ring in rings.values():
        assert ring is not None
        said = {(int(ring.own), int(ring.previous), pair) for pair in ring.previous_pairs}
        assert len(said) == LANES
        assert said <= replies
    psns = {(row.param("first_psn"), row.param("lane_shift")) for row in of_table(names.RECEIVERS)}
    assert psns == {(ring_psn(EPOCH), LANES.bit_length() - 1)}


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
EPOCH, VALUES = 5, 64
LANES = 2
GETS, SENDS = 0x100, 0x200
"""Queue pairs of lane 0, and on by rank; of lane 1 so many further on."""
ANOTHER_LANE = 0x1000


def address(rank: int) -> IPv4Address:
    return IPv4Address("10.7.0.1") + rank


def job() -> Job:
    forest = summed_at(Node("leaf", tuple(range(4))))
    memory = {"leaf": SlotRange(64, 64, 64)}
    made = Job(JobSpec("j", 4), 7, 0.0, placed_over(forest, memory, 7, EPOCH, mode=MODE.name))
    for rank, port in enumerate(PORTS):
        pairs = [pair + ANOTHER_LANE * lane for pair in (SENDS, GETS) for lane in range(LANES)]
        pairs = [pair + rank for pair in pairs]
        peer = Peer(address(rank), 4000 + rank, 0x0C_0000 + rank, ring_pairs=tuple(pairs))
        made.members[rank] = Endpoint(peer, port)
    return made


def of_table(table: str) -> list[Entry]:
    items = plan_job(job(), "leaf").items
    return [it for it in items if isinstance(it, Entry) and it.table == table]


@pytest.mark.parametrize("values", builds_of(names.TRANSPARENT))
def test_its_program_takes_the_rows_of_a_job(values: int) -> None:
    entities = entities_of(compiled(values, names.TRANSPARENT).p4info)
    for item in plan_job(job(), "leaf").items:
        entities.encode(item)
    assert all(
        "job" in {**dict(it.match), **dict(it.params)}
        for table in names.job_tables(names.TRANSPARENT)
        for it in of_table(table)
    )  # whoever reads them back knows whose they are


def test_a_ring_enters_and_leaves_each_port_once() -> None:
    flows = {it.exact("worker"): it for it in of_table(names.RECEIVERS)}
    assert {rank: flow.param("next_worker") for rank, flow in flows.items()} == NEXT
    (group,) = [it for it in plan_job(job(), "leaf").items if isinstance(it, Group)]
    assert sorted(group.replicas) == sorted((PORTS[NEXT[it]], it + 1) for it in range(4))
    crossing = [it for it in range(4) if PORTS[it] != PORTS[NEXT[it]]]
    assert len(crossing) == 2


def test_rings_of_one_and_of_two() -> None:
    for size in (1, 2):
        made = job()
        forest = summed_at(Node("leaf", tuple(range(size))))
        made = Job(
            JobSpec("j", size), 7, 0.0,
            placed_over(forest, {"leaf": SlotRange(64, 64, 64)}, 7, EPOCH, mode=MODE.name),
        )  # fmt: skip
        made.members.update({rank: job().members[rank] for rank in range(size)})
        rows = [it for it in plan_job(made, "leaf").items if isinstance(it, Entry)]
        to = {it.exact("worker"): it.param("next_worker")
              for it in rows if it.table == names.RECEIVERS}  # fmt: skip
        assert to == {rank: (rank + 1) % size for rank in range(size)}


@pytest.fixture
def switch() -> ModelDevice:
    """With a job's rows, as the controller makes them; no way through it is known."""
    device = ModelDevice(names.TRANSPARENT)
    device.reset(VALUES)
    network = Entry(names.OWN_ADDRESSES, (("dst_addr", "10.7.0.0/24"),), names.OURS)
    device.insert([network, *plan_job(job(), "leaf").items])
    return device


def sent(rank: int, seq: int, values: list[int]) -> tuple[int, bytes]:
    header = Header(job=7, epoch=EPOCH, worker=rank, slot=seq % 64, seq=seq, value_count=VALUES)
    lane, number = seq % LANES, seq // LANES
    to = GETS + ANOTHER_LANE * lane + NEXT[rank]
    bth = Bth(Opcode.RC_SEND_ONLY, to, ring_psn(EPOCH) + number, ack_request=1)
    frame = RoceFrame(
        bth, encode(header, values), int(address(rank)), int(address(NEXT[rank])), src_udp=0xC001
    )
    return PORTS[rank], encode_frame(frame)


def test_each_gets_the_sum_from_the_one_before_it(switch: ModelDevice) -> None:
    for rank in range(3):
        assert switch.process([sent(rank, 5, [rank] * VALUES)]) == []
    left = switch.process([sent(3, 5, [3] * VALUES)])
    assert len(left) == 4
    by_receiver = {decode_frame(data).dst_ipv4: (port, decode_frame(data)) for port, data in left}
    for rank, to in NEXT.items():
        port, frame = by_receiver[int(address(to))]
        header, values = decode(frame.payload)
        assert (port, frame.dst_mac, frame.src_ipv4) == (
            PORTS[to],
            0x0C_0000 + to,
            int(address(rank)),
        )
        assert frame.src_mac == 0x0200_0A07_0001 + rank
        pair = GETS + ANOTHER_LANE + to  # chunk 5 is the third on the second connection
        assert frame.bth == Bth(Opcode.RC_SEND_ONLY, pair, ring_psn(EPOCH) + 2, ack_request=1)
        assert (header.kind, header.worker, header.contributors) == (Kind.RESULT, to, 0b1111)
        assert set(values.tolist()) == {6}
    ((port, again),) = switch.process([sent(2, 5, [9] * VALUES)])
    header, values = decode(decode_frame(again).payload)
    assert (port, header.worker, header.flags) == (PORTS[1], 1, Flag.REPLAY)
    assert set(values.tolist()) == {6}


def test_acknowledgements_go_back_and_nowhere_else(switch: ModelDevice) -> None:
    for rank, to in NEXT.items():
        bth = Bth(Opcode.RC_ACKNOWLEDGE, SENDS + rank, 3)
        said = RoceFrame(bth, b"\x1f\0\0\1", int(address(to)), int(address(rank)), 0xC001)
        ((port, data),) = switch.process([(PORTS[to], encode_frame(said))])
        got = decode_frame(data)
        assert (port, got.dst_mac, got.bth) == (PORTS[rank], 0x0C_0000 + rank, bth)
        assert got.src_mac == 0x0200_0A07_0001 + to
        assert switch.process([(PORTS[to] + 5, encode_frame(said))]) == []


def test_numbers_of_epochs_in_a_row_are_far_apart() -> None:
    half = 1 << 23
    for epoch in (1, 2, 1000, 2**32 - 1):
        apart = (ring_psn(epoch + 1) - ring_psn(epoch)) % (1 << 24)
        assert min(apart, 2 * half - apart) > 1 << 20
