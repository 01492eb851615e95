"""Sessions over UDP whose lanes are dealt to several trees, each with a first node of its own."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from ina.congestion import Congestion
from ina.extension.host import RtoLimits
from ina.host import InvalidTicketError, OperationTimeoutError, Session
from ina.host.ticket import Ticket
from ina.host.trees import TreePlace
from ina.protocol.codec import Header, encode
from ina.protocol.peer import Peer
from ina.protocol.spec import DropReason, Kind, path_of
from ina.testing import numerics
from tests.selection import LONG
from tests.worlds.fakes.udp_forest import EPOCH, UdpForest
from tests.worlds.fakes.udp_model import closing
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.trees import Node, racks

FLOAT32 = np.dtype(np.float32)


def reduce_all(sessions: list[Session], elems: int, seed: int) -> None:
    for dtype in (INT32, FLOAT32):
        parts = random_parts(dtype, len(sessions), elems, seed)
        want = numerics.all_reduce(parts, "sum", sessions[0].ticket.values_per_packet)
        handles = [s.all_reduce(p, async_op=True) for s, p in zip(sessions, parts, strict=True)]
        assert all(numerics.same_bits(handle.wait(60), want) for handle in handles)


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_two_trees_that_begin_at_different_switches(loss: float) -> None:
    """Workers with one, two and four threads; a tree ends within a thread's part of the lanes."""
    trees = [racks([2, 1], "root"), Node("alone", (2, 0, 1))]
    with (
        UdpForest(trees, [5, 11], loss=loss, seed=1) as forest,
        closing(forest.sessions(3, (1, 2, 4), Congestion("fixed"))) as sessions,
    ):
        for seed, elems in enumerate((1, 64 * 16, 64 * 100 + 7)):
            reduce_all(sessions, elems, seed)
        stats = [session.stats() for session in sessions]
        assert [(s.threads, s.queues) for s in stats] == [(1, 1), (2, 2), (4, 4)]
        assert all(s.refused_results == s.corrupted_sums == 0 for s in stats)
        assert all(s.in_flight_limit == s.window == 16 for s in stats)
        seen = forest.forest
        assert seen is not None
        allowed = {DropReason.STALE, DropReason.DUPLICATE}  # of what was sent again
        assert all(set(switch.drops) <= allowed for switch in seen.switches.values())
        assert all(switch.outcomes for switch in seen.switches.values())


def test_two_trees_that_begin_at_one_switch_need_no_more_sockets() -> None:
    trees = [racks([1, 2], "a"), racks([1, 2], "b")]
    with (
        UdpForest(trees, [6, 2]) as forest,
        closing(forest.sessions(3, threads=(2, 1))) as sessions,
    ):
        reduce_all(sessions, 64 * 40, 1)
        assert [s.stats().queues for s in sessions] == [2, 1, 2]


def test_more_ranks_in_one_process_than_a_switch_sums() -> None:
    sizes = [32, 20, 12] if LONG else [14, 12, 8]
    before = len(os.listdir("/proc/self/fd"))
    with (
        UdpForest([racks(sizes)], [4], loss=0.005, seed=3) as forest,
        closing(forest.sessions(sum(sizes))) as sessions,
    ):
        reduce_all(sessions, 64 * 6 if LONG else 64 + 7, 1)
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_result_counts_only_from_the_first_node_of_its_tree() -> None:
    """What another node of the job says of a tree does not even arrive."""
    trees = [Node("a", (0, 1)), Node("b", (0, 1))]
    with (
        UdpForest(trees, [1, 1]) as forest,
        closing(forest.sessions(2)) as sessions,
    ):
        reduce_all(sessions, 64 * 2, 1)  # its sockets are as they stay
        received = sessions[0].stats().packets_received
        to = sessions[0]._link.own.place
        for name, job in (("a", 8), ("b", 7), ("a", 9)):
            packet = encode(Header(kind=Kind.RESULT, job=job, epoch=EPOCH), np.zeros(0, np.int32))
            forest.sockets[name].sendto(packet, to)
        forest.sockets["a"].sendto(b"short", to)
        reduce_all(sessions, 64 * 2, 2)
        # Of int32 at most one that says that it may wrap, and its halves; of floats one for the
        # exponent, and one.
        own = 2 * 3 + 2 * 2
        assert sessions[0].stats().packets_received <= received + own
        assert sessions[0].stats().refused_results == 0


def test_a_stall_names_where_the_missing_results_would_come_from() -> None:
    trees = [Node("a", (0, 1)), Node("leaf7", (0, 1))]
    with UdpForest(trees, [1, 1]) as forest:
        sessions = forest.sessions(2)
        forest.forest.switches["leaf7"].jobs.clear()  # type: ignore[union-attr]
        with closing(sessions):
            handles = [s.all_reduce(np.zeros(128, np.int32), async_op=True) for s in sessions]
            host, port = forest.sockets["leaf7"].getsockname()
            with pytest.raises(OperationTimeoutError, match=f"leaf7 at {host}:{port}"):
                handles[0].wait(1.0)


def places() -> tuple[TreePlace, ...]:
    return (
        TreePlace(7, Peer.at(("10.0.0.1", 17760)), 3, path_of([1, 3]), 0b11, 0, 20, "leaf1"),
        TreePlace(9, Peer.at(("10.0.0.2", 17760)), 0, path_of([2, 0]), 0b111, 20, 12, "leaf2"),
    )


def ticket(trees: tuple[TreePlace, ...], world_size: int = 64) -> Ticket:
    return Ticket("j", 1, 5, world_size, 64, 64, trees)


def test_a_ticket_names_its_trees_nodes() -> None:
    made = ticket(places())
    config = made.worker_config(stall_timeout_ns=1, rto=RtoLimits(), keep_results=False)
    assert (config.expected_bitmap, config.summands, config.divisor) == (0b11, 64, 64)
    assert (made.job, made.switch.place) == (7, ("10.0.0.1", 17760))
    assert not made.is_at_one_switch
    assert made.lanes == 32
    assert made.node_of(19) == made.node_of(32) == "leaf1 at 10.0.0.1:17760"
    assert made.node_of(20) == made.node_of(2**32 - 1) == "leaf2 at 10.0.0.2:17760"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda a, b: (), "0 trees, 1 to 16 are dealt lanes"),
        (lambda a, b: (a,), "its 1 trees have 20 of 32 lanes between them"),
        (lambda a, b: (b, a), "tree 0: first_lane is 20, must be 0"),
        (lambda a, b: (a, replace(b, lanes=13)), r"tree 1: lanes is 13, must be 1\.\.12"),
        (lambda a, b: (replace(a, worker=32), b), r"tree 0: worker is 32, must be 0\.\.31"),
        (lambda a, b: (replace(a, path=1 << 24), b), "tree 0: path is 16777216"),
        (
            lambda a, b: (a, replace(b, owners=(0x880,) * 63)),
            "tree 1: 63 owners, must be one for each of 64 ranks, or none",
        ),
        (
            lambda a, b: (a, replace(b, owners=(4096,) * 64)),
            r"tree 1: an owner is 4096, must be 0\.\.4095",
        ),
        (
            lambda a, b: (a, replace(b, owners=(0x880,) * 64)),
            "tree 1: owner 0x880 of rank 5 is not of its path 0x100000",
        ),
        (
            lambda a, b: (a, *(replace(b, lanes=1, first_lane=20 + i) for i in range(17))),
            "18 trees",
        ),
    ],
)
def test_trees_that_cannot_be(change: object, says: str) -> None:
    with pytest.raises(InvalidTicketError, match=says):
        ticket(change(*places()))  # type: ignore[operator]
