"""A job that moves to other trees of switches while it works, over UDP."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from ina.protocol.spec import DropReason
from tests.selection import LONG
from tests.worlds.fakes.udp_forest import EPOCH, UdpForest
from tests.worlds.fakes.udp_model import closing
from tests.worlds.virtual.remapped import NEVER_NS, Tensors
from tests.worlds.virtual.trees import Node, racks

ALONE = [Node("alone", (2, 0, 1))]
TWO = [racks([2, 1], "root"), Node("other", (1, 2, 0))]
RACKS = [racks([1, 2], "root")]
VALUES = 64


@pytest.mark.parametrize(
    ("threads", "loss"),
    itertools.product([(1,), (1, 2, 4)], [0.0, 0.03]) if LONG else [((1,), 0.0), ((1, 2, 4), 0.03)],
    ids=str,
)
@pytest.mark.parametrize(
    "steps",
    [
        [(ALONE, [16]), (TWO, [5, 11]), (RACKS, [4]), (ALONE, [8])],
        [(TWO, [12, 4]), (RACKS, [32]), (TWO, [1, 1])],
        [(RACKS, [8]), (ALONE, [8]), (RACKS, [8])],
    ],
    ids=["alone", "two trees", "racks"],
)
def test_it_moves_to_other_switches_under_way(
    steps: Sequence[tuple[list[Node], list[int]]], threads: tuple[int, ...], loss: float
) -> None:
    rng = random.Random(len(steps))
    (trees, lanes), *moves = steps
    later = [tree for trees, _ in moves for tree in trees]
    with (
        UdpForest(trees, lanes, VALUES, loss=loss, seed=1, later=later) as forest,
        closing(forest.sessions(3, threads=threads)) as sessions,
    ):
        tensors = Tensors(sessions, VALUES, 3)
        for number, (trees, lanes) in enumerate(moves, start=1):
            tensors.submit_all(3)
            forest.grow(trees, lanes, first_job=7 + 20 * (number % 2), epoch=EPOCH + number)
            for rank, session in enumerate(sessions):
                ticket, manner = forest.ticket(rank, 3), session._core.manner
                session._transport.begin_remap(manner.config(ticket), 0, manner.choice(ticket))
            first = sessions[0]._transport.reserve(0)
            for rank in rng.sample(range(3), 3):
                tensors.submit_all(1)
                sessions[rank]._transport.cut_over(first, True)
            tensors.submit_all(3)
            for session in sessions:
                assert session._transport.wait_cut(NEVER_NS)
                session._transport.end_remap()
            assert sessions[0]._transport.mappings() == [(EPOCH + number, sum(lanes))]
        tensors.check()
        assert forest.forest is not None
        allowed = {DropReason.STALE, DropReason.DUPLICATE}  # of what was sent again
        assert all(set(switch.drops) <= allowed for switch in forest.forest.switches.values())
        assert all(session.stats().corrupted_sums == 0 for session in sessions)
