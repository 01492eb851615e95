"""Hosts of several ranks in mode ``shared``, each one contributor, below an aggregator or two."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import DATA_PORT, Embedded
from ina.host import Session, WorkerOptions
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.torch.aggregator import LocalAggregator
from tests.torch.host_group import Group
from tests.worlds.processes.sharing import (
    DEADLINE_S,
    JOB_SLOTS,
    VALUES,
    Among,
    Operator,
    aggregator,
    input_of,
)

HOSTS = ("127.0.1.1",) * 3 + ("127.0.2.1",) * 2 + ("127.0.2.2",)
ELEMS = 3000
CHANGES = ((0, "pool"), (128, "shared"))


def summed(session: Session, rank: int) -> int:
    """How many of a few sums are wrong."""
    wrong = 0
    for step in range(5):
        parts = [input_of(0, other, step, ELEMS) for other in range(len(HOSTS))]
        found = session.all_reduce(parts[rank])
        wrong += not np.array_equal(found, np.sum(parts, axis=0, dtype=np.int32))
    return wrong


@pytest.mark.parametrize(("aggregators", "loss"), [(0, 0.0), (2, 0.0), (2, 0.02)])
def test_hosts_share_slots_and_change_their_mode(aggregators: int, loss: float) -> None:
    """0: rank 0 runs its host's node and the aggregator, in one process."""
    group = Group(HOSTS)
    with ExitStack() as opened:
        others = [opened.enter_context(aggregator()) for _ in range(aggregators)]
        config: dict[str, Any] = {"switch": {"mode": "shared", "shared_slots": 16}}
        if others:
            config["jobs"] = {"aggregators": len(others)}
        embedded: Embedded = opened.enter_context(
            Among(others, values=VALUES, slots=JOB_SLOTS, loss_rate=loss, config=config)
        )
        channel = opened.enter_context(open_channel(embedded.controller_addr))
        operator = Operator(OperatorStub(channel))

        def follow(session: Session, rank: int, slots: int, mode: str) -> int:
            """Sums until the job has changed, which rank 0 says; how many were wrong."""
            wrong, over = 0, np.zeros(1, np.int32)
            deadline_s = time.monotonic() + DEADLINE_S
            if rank == 0:
                operator.change(slots, mode)
            while not over[0]:
                wrong += summed(session, rank)
                over[0] = rank == 0 and (
                    operator.has(slots or JOB_SLOTS, mode) or time.monotonic() > deadline_s
                )
                over = session.all_reduce(over)
            assert time.monotonic() < deadline_s
            return wrong + summed(session, rank)

        def work(rank: int) -> tuple[int, str]:
            own = LocalAggregator(DEADLINE_S) if rank == 0 and not others else None
            node = group.node(rank)
            with Session.join(
                embedded.controller_addr,
                "job0",
                rank,
                len(HOSTS),
                WorkerOptions(
                    host=HOSTS[rank],
                    node=node,
                    mode="shared",
                    aggregator=own,
                    timeout_s=DEADLINE_S,
                    op_timeout_s=DEADLINE_S,
                ),
            ) as session:
                wrong = sum(follow(session, rank, *change) for change in CHANGES)
                path = session.path
            if node is not None:
                node.close(DEADLINE_S)
            if own is not None:
                own.close()
            return wrong, path

        with ThreadPoolExecutor(len(HOSTS)) as pool:
            answers = list(pool.map(work, range(len(HOSTS))))
        assert [wrong for wrong, _ in answers] == [0] * len(HOSTS)
        assert [path.split()[0] for _, path in answers] == ["shared"] * 5 + ["UDP"]
        packets = [it.stats().ports[DATA_PORT].rx_packets for it in others]
        assert not packets or min(packets) > max(packets) / 4  # each has its part of the lanes
