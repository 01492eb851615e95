"""ina.p4.names is what the P4Info of every build says."""

from __future__ import annotations

import functools

import pytest

from ina.p4 import compiled, names
from ina.p4.builds import all_builds
from ina.p4.info import ProgramInfo, read_p4info
from ina.protocol.spec import DropReason

KEYS = {
    names.JOBS: ["job/16 exact", "epoch/16 exact"],
    names.MEMBERS: [
        "ingress_port/9 exact",
        "src_addr/32 exact",
        "src_port/16 exact",
        "job/16 exact",
        "epoch/16 exact",
        "worker/8 exact",
        "kind/4 exact",
    ],
    names.OWN_ADDRESSES: ["dst_addr/32 exact"],
    names.CHILDREN: ["job/16 exact", "way/24 exact"],
    names.RECEIVERS: ["job/16 exact", "worker/8 exact"],
    names.ECN_THRESHOLD: [],
    names.ROUTER_MACS: ["dst_mac/48 exact"],
    names.IPV4_LPM: ["dst_addr/32 lpm"],
    names.DMAC: ["dst_mac/48 exact"],
}
PARAMETERS = {
    names.ADMIT_JOB: [
        "epoch/32",
        "first_slot/32",
        "slots/16",
        "full_bitmap/32",
        "group/16",
        "job_index/16",
    ],
    names.ADMIT_INNER_JOB: [
        "epoch/32",
        "first_slot/32",
        "slots/16",
        "full_bitmap/32",
        "group/16",
        "job_index/16",
        "parent_port/9",
        "own_worker/8",
        "own_bit/32",
        "own_level/4",
        "path_mask/24",
    ],
    names.ADMIT_MEMBER: ["worker_bit/32"],
    names.ADMIT_PARENT: [],
    names.OURS: [],
    names.TO_CHILD: ["port/9", "worker/8"],
    names.ADDRESS: [
        *("dst_mac/48", "dst_addr/32", "dst_port/16"),
        *("way/24", "way_mask/24", "strips_on/4", "strips_off/4"),
    ],
    names.MARK_ABOVE: ["packets/19"],
    names.ROUTE: ["port/9", "src_mac/48", "dst_mac/48"],
    names.FORWARD: ["port/9"],
    names.FLOOD: ["group/16"],
    names.SEND_TO_CONTROLLER: [],
    names.DROP: [],
    names.NO_ACTION: [],
}
SHARED_PARAMETERS = {
    names.ADMIT_SHARED_JOB: [
        *(it for it in PARAMETERS[names.ADMIT_INNER_JOB] if it != "own_bit/32"),
        "lane_mask/16",
        "claimable/16",
        "age_us/32",
        "lead_us/32",
    ],
    names.OWNER_IS: [
        "job/16",
        "job_index/16",
        "full_bitmap/32",
        "parent_port/9",
        "own_worker/8",
        "own_level/4",
    ],
    names.ADMIT_SET: ["worker_bits/32"],
}
ROCE_KEYS = {
    names.MEMBERS: [
        "dest_qp/24 exact" if key.startswith("src_port") else key for key in KEYS[names.MEMBERS]
    ],
    names.RECEIVERS: [*KEYS[names.RECEIVERS], "queue/8 exact"],
}
ROCE_PARAMETERS = {
    names.ADMIT_MEMBER: ["worker_bit/32", "queue/8"],
    names.ADMIT_PARENT: ["queue/8"],
    names.ADDRESS: ["dst_mac/48", "dst_addr/32", "src_port/16", "dest_qp/24", "segment_mask/32"],
}
RING_KEYS = {
    names.MEMBERS: [
        *KEYS[names.MEMBERS][:2],
        "dst_addr/32 exact",
        "dest_qp/24 exact",
        *KEYS[names.MEMBERS][3:],
    ],
    names.REPLIES: [
        *KEYS[names.MEMBERS][:2],
        "dst_addr/32 exact",
        "dest_qp/24 exact",
    ],
    names.RECEIVERS: [*KEYS[names.RECEIVERS], "queue/8 exact"],
    names.OWN_ADDRESSES: ["dst_addr/32 lpm"],
    names.BYSTANDERS: ["dst_addr/32 lpm"],
}
RING_PARAMETERS = {
    names.ADMIT_MEMBER: ["worker_bit/32", "next_port/9", "queue/8"],
    names.ADMIT_PARENT: ["next_port/9", "queue/8"],
    names.ADDRESS: [
        "src_mac/48",
        "src_addr/32",
        "dst_mac/48",
        "dst_addr/32",
        "src_port/16",
        "dest_qp/24",
        "first_psn/24",
        "lane_shift/8",
        "segment_mask/32",
        "next_worker/8",
    ],
}
REPLY_PARAMETERS = ["port/9", "src_mac/48", "dst_mac/48", "job/16"]
FURTHER_PARAMETERS = {names.ROCE: ROCE_PARAMETERS, names.TRANSPARENT: RING_PARAMETERS}
ACTIONS = [
    (names.OWN_ADDRESSES, names.OURS),
    (names.CHILDREN, names.TO_CHILD),
    (names.JOBS, names.ADMIT_JOB),
    (names.JOBS, names.ADMIT_INNER_JOB),
    (names.MEMBERS, names.ADMIT_MEMBER),
    (names.MEMBERS, names.ADMIT_PARENT),
    (names.RECEIVERS, names.ADDRESS),
    (names.ECN_THRESHOLD, names.MARK_ABOVE),
    (names.ROUTER_MACS, names.NO_ACTION),
    (names.IPV4_LPM, names.ROUTE),
    (names.DMAC, names.FORWARD),
]


@pytest.fixture(params=all_builds(), ids=str)
def build(request: pytest.FixtureRequest) -> tuple[str, int]:
    mode, values = request.param
    return str(mode), int(values)


@pytest.fixture
def values(build: tuple[str, int]) -> int:
    return build[1]


@pytest.fixture
def mode(build: tuple[str, int]) -> str:
    return build[0]


@functools.cache
def read(values: int, mode: str) -> ProgramInfo:
    return read_p4info(compiled(values, mode).p4info)


@pytest.fixture
def info(values: int, mode: str) -> ProgramInfo:
    return read(values, mode)


def test_tables_and_keys(info: ProgramInfo, mode: str) -> None:
    found = {
        table.name: [f"{key.name}/{key.bits} {key.match}" for key in table.keys]
        for table in info.tables
    }
    further = {
        names.SHARED: {names.OWNERS: ["epoch/32 exact"]},
        names.ROCE: ROCE_KEYS,
        names.TRANSPARENT: RING_KEYS,
    }
    assert found == KEYS | further.get(mode, {})


def test_actions_and_parameters(info: ProgramInfo, mode: str) -> None:
    found = {a.name: [f"{p.name}/{p.bits}" for p in a.parameters] for a in info.actions}
    further = FURTHER_PARAMETERS.get(mode, {})
    assert {name: found[name] for name in PARAMETERS} == PARAMETERS | further
    of_shared = {name: found[name] for name in SHARED_PARAMETERS if name in found}
    assert of_shared == (SHARED_PARAMETERS if mode == names.SHARED else {})
    by_table = {table.name: table.actions for table in info.tables}
    assert all(action in by_table[table] for table, action in ACTIONS)
    of_stream = {names.ADMIT_STREAM_JOB, names.ADMIT_INNER_STREAM_JOB}
    assert of_stream & set(found) == (of_stream if mode == names.STREAM else set())
    if mode == names.STREAM:
        assert of_stream <= set(by_table[names.JOBS])
        assert found[names.ADMIT_STREAM_JOB] == found[names.ADMIT_JOB]
        assert found[names.ADMIT_INNER_STREAM_JOB] == found[names.ADMIT_INNER_JOB]
    if mode == names.TRANSPARENT:
        assert (found[names.PASS], found[names.REPLY]) == ([], REPLY_PARAMETERS)
        assert names.PASS in by_table[names.BYSTANDERS]
        assert names.REPLY in by_table[names.REPLIES]
    if mode == names.SHARED:
        assert names.ADMIT_SHARED_JOB in by_table[names.JOBS]
        assert names.ADMIT_SET in by_table[names.MEMBERS]


def test_sizes(info: ProgramInfo, mode: str) -> None:
    sizes = {table.name: table.size for table in info.tables}
    assert sizes[names.JOBS] == names.JOBS_TOTAL
    per_member = (names.MEMBERS, names.RECEIVERS, names.CHILDREN)
    most = names.FLOWS_TOTAL if mode == names.TRANSPARENT else names.MEMBERS_TOTAL
    assert {sizes[table] for table in per_member} == {most}
    assert sizes[names.OWN_ADDRESSES] == names.OWN_ADDRESSES_TOTAL
    if mode == names.TRANSPARENT:
        assert sizes[names.REPLIES] == names.FLOWS_TOTAL
        assert sizes[names.BYSTANDERS] == names.BYSTANDERS_TOTAL
    assert {register.size for register in info.registers} == {names.SLOTS_TOTAL}


def test_counters(info: ProgramInfo, mode: str) -> None:
    found = {counter.name: counter.size for counter in info.counters}
    drop_reasons = len(DropReason) + (mode in (names.ROCE, names.TRANSPARENT))
    of_jobs = names.JOB_COUNTERS + (names.SHARED_JOB_COUNTERS if mode == names.SHARED else ())
    assert found == dict.fromkeys(of_jobs, names.JOBS_TOTAL) | {names.DROPS: drop_reasons}
    direct = {table.name for table in info.tables if table.direct_counter}
    assert direct == {names.MEMBERS, names.RECEIVERS, names.IPV4_LPM, names.DMAC}


def test_one_register_a_value_and_the_name_of_the_build(
    info: ProgramInfo, values: int, mode: str
) -> None:
    found = [r.name for r in info.registers if ".accumulate." in r.name]
    assert found == [f"PoolIngress.accumulate.value_{i}" for i in range(values)]
    assert info.name == f"{mode}_v1model_{values}"
