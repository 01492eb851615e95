"""What a job of two workers needs on the switch, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from finsy import P4Schema

from ina.controller.job import Job
from ina.controller.switches.plan import epoch_mark
from ina.p4 import compiled, names
from ina.protocol.peer import Peer
from ina.protocol.spec import Kind, index_bits
from ina.tables.values import Entry, Group
from ina.trees.endpoint import Endpoint
from ina.trees.slots import SlotRange
from tests.worlds.fakes.switches import job_at, plan_here

OF_WORKERS = (("strips_on", 0b100), ("strips_off", 0b010))
"""An owner gets no values of a GATHER, and others get none of a SCATTER."""


def two_workers() -> Job:
    job = job_at("j", 7, 2, SlotRange(1024, 64, 512), 0.0, epoch=0x0001_0005)
    job.members[1] = Endpoint(Peer(IPv4Address("10.0.0.2"), 4001, 0x0A0B0C0D0E0F), 3)
    job.members[0] = Endpoint(Peer(IPv4Address("10.0.0.1"), 4000), 2)
    return job


def test_a_job_of_two_workers() -> None:
    group = Group(0x4007, ((2, 1), (3, 2)))
    receivers = (
        Entry(
            names.RECEIVERS,
            (("job", 7), ("worker", 0)),
            names.ADDRESS,
            (
                *(("dst_mac", 0x0200_0A00_0001), ("dst_addr", 0x0A00_0001), ("dst_port", 4000)),
                *(("way", 0), ("way_mask", 0xC00), *OF_WORKERS),
            ),
        ),
        Entry(
            names.RECEIVERS,
            (("job", 7), ("worker", 1)),
            names.ADDRESS,
            (
                *(("dst_mac", 0x0A0B_0C0D_0E0F), ("dst_addr", 0x0A00_0002), ("dst_port", 4001)),
                *(("way", 0x400), ("way_mask", 0xC00), *OF_WORKERS),
            ),
        ),
    )
    admit = Entry(
        names.JOBS,
        (("job", 7), ("epoch", 5)),
        names.ADMIT_JOB,
        (
            ("epoch", 0x0001_0005),
            ("first_slot", 1024),
            ("slots", 64),
            ("full_bitmap", 0b11),
            ("group", 0x4007),
            ("job_index", 7),
        ),
    )
    members = tuple(
        Entry(
            names.MEMBERS,
            (
                ("ingress_port", port),
                ("src_addr", address),
                ("src_port", udp_port),
                ("job", 7),
                ("epoch", 5),
                ("worker", rank),
                ("kind", Kind.CONTRIBUTION),
            ),
            names.ADMIT_MEMBER,
            (("worker_bit", 1 << rank),),
        )
        for rank, (port, address, udp_port) in enumerate(
            [(2, 0x0A00_0001, 4000), (3, 0x0A00_0002, 4001)]
        )
    )
    plan = plan_here(two_workers())
    assert plan.stages == ((group, *receivers), (admit,), members)
    assert plan.members[1][0] == members[1]


RESULTS = IPv4Address("239.255.1.7")
OTHER = IPv4Address("239.255.2.7")


def workers_at(places: Sequence[tuple[int, IPv4Address | None]]) -> Job:
    """Each behind a port of the switch, listening to a group or not."""
    job = job_at("j", 7, len(places), SlotRange(1024, 64, 512), 0.0, epoch=5)
    for rank, (port, group) in enumerate(places):
        address = IPv4Address("10.0.0.1") + rank
        job.members[rank] = Endpoint(Peer(address, 4000 + rank), port, results_group=group)
    return job


@pytest.mark.parametrize(
    ("places", "replicas"),
    [
        ([(2, RESULTS)], ((2, 1),)),
        ([(2, RESULTS), (2, RESULTS)], ((2, 256),)),
        ([(2, None), (2, None)], ((2, 1), (2, 2))),
        # One behind the port wants its own.
        ([(2, RESULTS), (2, None), (2, RESULTS)], ((2, 256), (2, 2))),
        ([(2, None), (2, RESULTS)], ((2, 1), (2, 2))),
        # One alone behind its port needs no multicast.
        ([(2, RESULTS), (2, RESULTS), (3, RESULTS)], ((2, 256), (3, 3))),
        ([(2, RESULTS), (3, RESULTS)], ((2, 1), (3, 2))),
        # A copy a port.
        (
            [(3, RESULTS), (2, RESULTS), (3, RESULTS), (2, RESULTS), (2, None)],
            ((3, 256), (2, 256), (2, 5)),
        ),
        # One entry has one address.
        ([(2, RESULTS), (2, OTHER), (2, RESULTS)], ((2, 256), (2, 2))),
        ([(2, RESULTS), (2, OTHER)], ((2, 1), (2, 2))),
        ([(2, RESULTS)] * 32, ((2, 256),)),
    ],
)
def test_who_shares_a_copy(
    places: list[tuple[int, IPv4Address | None]], replicas: tuple[tuple[int, int], ...]
) -> None:
    plan = plan_here(workers_at(places))
    assert plan.groups[0] == Group(0x4007, replicas)
    bits = index_bits(len(places), is_root=True)
    unicast = tuple(
        Entry(
            names.RECEIVERS,
            (("job", 7), ("worker", rank)),
            names.ADDRESS,
            (
                ("dst_mac", 0x0200_0A00_0001 + rank),
                ("dst_addr", 0x0A00_0001 + rank),
                ("dst_port", 4000 + rank),
                ("way", rank << 12 - bits),
                ("way_mask", 0x1000 - (1 << 12 - bits)),
                *OF_WORKERS,
            ),
        )
        for rank in range(len(places))
    )
    shared = Entry(
        names.RECEIVERS,
        (("job", 7), ("worker", 255)),
        names.ADDRESS,
        # RFC 1112: 23 bits of the address, of 28 that tell groups apart.
        (
            *(("dst_mac", 0x0100_5E7F_0107), ("dst_addr", 0xEFFF_0107), ("dst_port", 17761)),
            *(("way", 0), ("way_mask", 0), ("strips_on", 0), ("strips_off", 0)),
        ),
    )
    is_shared = any(instance == 256 for _, instance in replicas)
    assert plan.stages[0] == (plan.groups[0], *unicast, *([shared] if is_shared else []))
    # Whoever shares contributes like others.
    alone = plan_here(workers_at([(port, None) for port, _ in places]))
    assert plan.stages[1:] == alone.stages[1:]
    assert [member.results_group for member in plan.endpoints.values()] == [
        group for _, group in places
    ]


def test_entries_name_what_the_program_has() -> None:
    schema = P4Schema(compiled(64).p4info)
    job = two_workers()
    for rank, at in job.members.items():
        job.members[rank] = replace(at, switch_port=2, results_group=RESULTS)
    items = [item for stage in plan_here(job).stages for item in stage]
    for item in [*items, epoch_mark(9)]:
        if isinstance(item, Entry):
            table = schema.tables[item.table]
            assert [name for name, _ in item.match] == [f.alias for f in table.match_fields]
            action = table.actions[item.action]
            assert [name for name, _ in item.params] == [p.name for p in action.params]
