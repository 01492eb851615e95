"""Jobs of mode shared are resized and change their mode while they sum, over real switches."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import grpc
import numpy as np
import pytest

from ina.cli import main
from ina.controller.embedded import DATA_PORT, Embedded
from ina.host import Session, WorkerOptions
from ina.p4 import names
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.torch.aggregator import LocalAggregator
from tests.worlds.processes.sharing import (
    DEADLINE_S,
    JOB_SLOTS,
    VALUES,
    Among,
    Operator,
    aggregator,
    input_of,
    run_jobs,
    services,
)

SHARED_SLOTS = 16
ELEMS = 3000
CHANGES = ((128, ""), (16, ""), (0, "pool"), (256, ""), (32, "shared"), (64, "pool"), (0, "shared"))
"""Slots and mode, one after the other; 0 and empty: as it has."""
HAS = ((128, "shared"), (16, "shared"), (16, "pool"), (256, "pool"), (32, "shared"), (64, "pool"),
       (64, "shared"))  # fmt: skip


def changing(
    embedded: Embedded, operator: Operator, rank: int, size: int, own: LocalAggregator | None
) -> None:
    """One worker: sums all along; rank 0 changes the job, and says when to go on."""
    with Session.join(
        *(embedded.controller_addr, "job0", rank, size),
        options=WorkerOptions(
            transport="udp",
            mode="shared",
            aggregator=own,
            timeout_s=DEADLINE_S,
            op_timeout_s=DEADLINE_S,
        ),
    ) as session:
        step = 0
        for change, has in zip(CHANGES, HAS, strict=True):
            if rank == 0:
                operator.change(*change)
            over = np.zeros(1, np.int32)
            deadline_s = time.monotonic() + DEADLINE_S
            while not over[0]:
                assert time.monotonic() < deadline_s, operator.job()
                found = session.all_reduce(input_of(0, rank, step, ELEMS))
                parts = (input_of(0, other, step, ELEMS) for other in range(size))
                assert np.array_equal(found, np.sum(list(parts), axis=0, dtype=np.int32)), step
                step += 1
                over[0] = rank == 0 and operator.has(*has)
                over = session.all_reduce(over)
        assert session.ticket.slots == HAS[-1][0]


@pytest.mark.parametrize(
    ("brings_aggregator", "loss"),
    [
        (False, 0.02),
        (True, 0.0),
        pytest.param(False, 0.0, marks=pytest.mark.long),
        pytest.param(True, 0.02, marks=pytest.mark.long),
    ],
)
def test_sums_are_exact_while_slots_and_mode_change(brings_aggregator: bool, loss: float) -> None:
    size = 3
    with ExitStack() as opened:
        own: list[LocalAggregator | None] = [None] * size
        if brings_aggregator:
            config = {"switch": {"mode": "shared", "shared_slots": SHARED_SLOTS}}
            embedded = opened.enter_context(
                Embedded(values=VALUES, slots=JOB_SLOTS, loss_rate=loss, config=config)
            )
            own[0] = runs = LocalAggregator(DEADLINE_S)
            opened.callback(runs.close)
        else:
            embedded = opened.enter_context(services(SHARED_SLOTS, loss=loss))
        channel = opened.enter_context(open_channel(embedded.controller_addr))
        operator = Operator(OperatorStub(channel))
        pool = opened.enter_context(ThreadPoolExecutor(size + 1))
        ranks = [
            pool.submit(changing, embedded, operator, rank, size, own[rank]) for rank in range(size)
        ]
        if not brings_aggregator:  # another job wants the same slots all along
            run_jobs(embedded, {1: 2}, steps=20, elems=ELEMS)
        for one in ranks:
            one.result(3 * DEADLINE_S)
        assert operator.used() == 0
        if own[0] is not None:
            counted = own[0].counts()
            assert counted is not None
            assert counted.results > 0
            assert own[0]._switch is not None
            (kept,) = own[0]._switch._mappings.rows
            assert kept


@pytest.mark.parametrize("loss", [pytest.param(0.0, marks=pytest.mark.long), 0.02])
def test_lanes_are_dealt_among_two_aggregators_whatever_changes(loss: float) -> None:
    size = 3
    with ExitStack() as opened:
        others = [opened.enter_context(aggregator()) for _ in range(2)]
        config = {
            "switch": {"mode": "shared", "shared_slots": SHARED_SLOTS},
            "jobs": {"aggregators": 2},
        }
        embedded = opened.enter_context(
            Among(others, values=VALUES, slots=JOB_SLOTS, loss_rate=loss, config=config)
        )
        channel = opened.enter_context(open_channel(embedded.controller_addr))
        operator = Operator(OperatorStub(channel))
        pool = opened.enter_context(ThreadPoolExecutor(size))
        ranks = [
            pool.submit(changing, embedded, operator, rank, size, None) for rank in range(size)
        ]
        run_jobs(embedded, {1: 2}, steps=20, elems=ELEMS, priorities={1: 4})
        for one in ranks:
            one.result(3 * DEADLINE_S)
        assert operator.used() == 0
        sums = [it.stats().ports[DATA_PORT].rx_packets for it in others]
        assert min(sums) > max(sums) / 4  # each has its part of the lanes


def test_an_operator_changes_a_mode_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    with services(SHARED_SLOTS) as embedded, open_channel(embedded.controller_addr) as channel:
        operator = Operator(OperatorStub(channel))
        command = ["job", "resize", "job0", "--controller", embedded.controller_addr]
        with Session.join(
            *(embedded.controller_addr, "job0", 0, 1),
            options=WorkerOptions(transport="udp", mode="pool"),
        ) as session:
            ones = np.ones(500, np.int32)
            assert main.run([*command, "--mode", "shared", "--slots", "32", "--wait", "60"]) == 0
            said = capsys.readouterr().out
            assert said.startswith("resized job0: mode pool -> shared, 64 -> 32 slots (0..31), win")
            assert np.array_equal(session.all_reduce(ones), ones)
            assert [it.shared for it in operator.job().tree] == [False, True]
            assert main.run([*command, "--mode", "shared"]) == 2
            assert "job 'job0' has mode 'shared' already" in capsys.readouterr().err
            assert main.run([*command, "--mode", "atp"]) == 2
            assert "no mode 'atp': use pool or shared" in capsys.readouterr().err
            assert main.run(command) == 2
            assert "job 'job0': 0 slots: not an even number" in capsys.readouterr().err


def test_a_switch_of_mode_pool_shares_no_slots() -> None:
    with (
        Embedded(values=VALUES) as embedded,
        open_channel(embedded.controller_addr) as channel,
        Session.join(embedded.controller_addr, "job0", 0, 1, WorkerOptions(transport="udp")),
        pytest.raises(grpc.RpcError, match="switch 'switch' runs the program of mode 'pool'"),
    ):
        Operator(OperatorStub(channel)).change(0, names.SHARED)
