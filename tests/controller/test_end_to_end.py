"""Real sessions through one controller and one switch: two jobs side by side, then one again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

from ina.congestion import Congestion, CongestionError
from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions, udp
from ina.host.calls import congestion_of
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.switches import of_jobs

Ints = npt.NDArray[np.int32]
ELEMS = 5_000
ROUNDS = 3
_IP_MULTICAST_ALL = 49  # Python has no name for it


def inputs(job: str, rank: int) -> Ints:
    seed = [ord(job), rank]
    return np.random.default_rng(seed).integers(-(2**20), 2**20, ELEMS, dtype=np.int32)


def work(address: str, job: str, rank: int, world_size: int, gate: threading.Barrier) -> Ints:
    total = inputs(job, rank)
    with Session.join(address, job, rank, world_size, WorkerOptions(timeout_s=60)) as session:
        gate.wait(60)  # both jobs run before either sends
        for _ in range(ROUNDS):
            total = np.asarray(session.all_reduce(total))
        gate.wait(60)
    return total


def expected(job: str, world_size: int) -> Ints:
    total = sum(inputs(job, rank).astype(np.int64) for rank in range(world_size))
    return np.asarray(total * world_size ** (ROUNDS - 1)).astype(np.int32)


def receivers(embedded: Embedded) -> dict[str, int]:
    """Results by whom they were sent to."""
    shown = embedded.show().counters
    return {c.label: c.packets for c in shown if c.name == "receiver_results"}


def test_two_jobs_at_once_and_their_counters() -> None:
    sizes = {"a": 2, "b": 3}
    gate = threading.Barrier(sum(sizes.values()) + 1)
    with Embedded(values=64) as embedded, ThreadPoolExecutor(8) as pool:
        sums: dict[str, list[Future[Ints]]] = {
            job: [
                pool.submit(work, embedded.controller_addr, job, rank, size, gate)
                for rank in range(size)
            ]
            for job, size in sizes.items()
        }
        gate.wait(60)
        gate.wait(60)
        for job, size in sizes.items():
            for result in sums[job]:
                np.testing.assert_array_equal(result.result(60), expected(job, size))
        shown = embedded.show()
        assert not of_jobs(shown)
        assert shown.slots_used == 0


def test_the_controllers_file_or_the_worker_says_what_is_in_flight() -> None:
    def limit(rank: int, own: Congestion | None) -> int:
        with Session.join(
            embedded.controller_addr, "c", rank, 2, WorkerOptions(congestion=own)
        ) as session:
            np.testing.assert_array_equal(session.all_reduce(np.ones(500, np.int32)), 2)
            assert session.ticket.congestion == Congestion("fixed", {"packets": 3})
            return session.stats().in_flight_limit

    asked = {"congestion": {"algorithm": "fixed", "packets": 3}}
    with Embedded(values=64, config=asked) as embedded, ThreadPoolExecutor(2) as pool:
        owns = (None, Congestion("fixed", {"packets": 5}))
        assert list(pool.map(limit, range(2), owns)) == [3, 5]


def test_an_algorithm_that_a_worker_does_not_know_is_named() -> None:
    said = pb2.JoinReply(congestion=pb2.Congestion(algorithm="of-next-year"))
    with pytest.raises(CongestionError, match=r"controller's \[congestion\] .* 'of-next-year'"):
        congestion_of(said)


def test_a_running_job_is_counted_by_packet() -> None:
    with Embedded(values=64) as embedded:
        with Session.join(embedded.controller_addr, "j", 0, 1) as session:
            session.all_reduce(np.ones(640, np.int32))
            counters = {
                (counter.name, counter.label): counter.packets
                for counter in embedded.show().counters
            }
            assert counters["job_results", "job j"] >= 10
            assert counters["member_packets", "job j rank 0"] >= 10
            assert counters["drops", "member"] == 0
        with Session.join(embedded.controller_addr, "j", 0, 1):
            fresh = {c.name: c.packets for c in embedded.show().counters if c.label == "job j"}
            assert fresh["job_results"] == 0  # the new incarnation counts from 0


def test_a_job_starts_again_on_the_same_slots() -> None:
    with Embedded(values=64, slots=8192) as embedded:  # one range: always the same slots
        for turn in range(3):
            gate = threading.Barrier(2)
            with ThreadPoolExecutor(2) as pool:
                results = [
                    pool.submit(work, embedded.controller_addr, "j", rank, 2, gate)
                    for rank in range(2)
                ]
                for result in results:
                    np.testing.assert_array_equal(result.result(60), expected("j", 2), str(turn))


def sum_until(holds: Callable[[dict[str, int]], bool]) -> None:
    """Three workers sum by multicast; they stay until ``holds`` is true of ``receivers``."""
    with (
        Embedded(values=64, config={"switch": {"multicast": "239.192.3.0/24"}}) as embedded,
        ThreadPoolExecutor(3) as pool,
    ):
        gate = threading.Barrier(4)
        sums = [pool.submit(work, embedded.controller_addr, "a", r, 3, gate) for r in range(3)]
        gate.wait(60)
        while not holds(receivers(embedded)):
            assert not gate.broken
        gate.wait(60)
        for result in sums:
            np.testing.assert_array_equal(result.result(60), expected("a", 3))


def test_sums_of_several_workers_come_by_multicast() -> None:
    sum_until(
        lambda found: len(found) == 4 and found["job a IP multicast"] > 0,
    )


def test_where_multicast_does_not_arrive_sums_come_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deaf(group: Peer, connected: socket.socket) -> socket.socket:
        """Bound, and in no group."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        sock.bind(group.place)
        return sock

    monkeypatch.setattr(udp, "open_group_socket", deaf)
    sum_until(lambda found: set(found) == {f"job a rank {rank}" for rank in range(3)})
