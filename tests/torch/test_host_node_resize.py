"""A job with nodes on its hosts is resized while it runs: they have both mappings, then one."""

from __future__ import annotations

import asyncio
import time

import numpy as np

from ina.host import Session
from ina.p4 import names
from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.tables.values import Entry
from ina.torch.host_node import LocalNode
from tests.torch.host_group import HOSTS, Group
from tests.worlds.processes.two_racks import TIMEOUT_S, two_racks

SIZES = (1024, 64, 256)
SUMS = 60  # for each size


def mappings_at(session: Session) -> set[int]:
    """Epochs in the tables of the node that this rank runs, if it runs one."""
    assert session._core.member is not None
    node = session._core.member._state.grant.options.node
    if not isinstance(node, LocalNode) or node._switch is None:
        return set()
    entities, switch = node._switch._entities, node._switch._switch
    found = set()
    for table in (names.JOBS, names.MEMBERS):
        for entity in switch.read([entities.entries_of(table)]):
            row = entities.decode(entity)
            if isinstance(row, Entry):
                found.add(row.exact("epoch"))
    return found


async def test_hosts_of_several_ranks_follow_a_resize() -> None:
    async with two_racks() as (app, _):
        parts = np.random.default_rng(2).integers(-(1 << 20), 1 << 20, (len(HOSTS), 700), np.int32)
        want = parts.sum(0, np.int32)

        def resize(slots: int) -> None:
            with open_channel(app.listen_addr) as channel:
                stub = OperatorStub(channel)
                stub.ResizeJob(pb2.ResizeJobRequest(name="job", slots=slots), timeout=TIMEOUT_S)

        def is_over(slots: int) -> bool:
            with open_channel(app.listen_addr) as channel:
                asked = pb2.ShowJobRequest(name="job")
                job = OperatorStub(channel).ShowJob(asked, timeout=TIMEOUT_S).job
            return job.slots == slots and not job.HasField("remapping")

        def work(session: Session, rank: int) -> tuple[int, int, set[int]]:
            wrong = 0
            for slots in SIZES:
                if rank == 0:
                    resize(slots)
                for _ in range(SUMS):
                    wrong += int((session.all_reduce(parts[rank]) != want).any())
                over = np.zeros(1, np.int32)
                deadline = time.monotonic() + TIMEOUT_S
                while not over[0] and time.monotonic() < deadline:  # rank 0 says when
                    over[0] = int(rank == 0 and is_over(slots))
                    over = session.all_reduce(over)
            while len(session._transport.mappings()) > 1 and time.monotonic() < deadline:
                time.sleep(0.01)
            return wrong, session.ticket.slots, mappings_at(session)

        answers = await asyncio.wait_for(Group(HOSTS).together(app, work), 2 * TIMEOUT_S)
    assert all(isinstance(answer, tuple) for answer in answers), answers
    wrong, slots, epochs = zip(*answers, strict=True)
    assert wrong == (0,) * len(HOSTS)
    assert slots == (SIZES[-1],) * len(HOSTS)
    assert [len(one) for one in epochs] == [1, 0, 0, 1, 0, 0]
