"""Real sockets: trains get shorter where queues have made the window small; on a slow link results
are read in groups, so that who waits is not woken for each packet."""

from __future__ import annotations

import socket
from collections import deque

import numpy as np
import pytest

from ina._native.host import WorkerCore
from ina.congestion import Congestion
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import HEADER_BYTES
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.virtual.cores import MS, result_of, worker_config

UDP_GRO = 104  # linux/udp.h
CHUNKS = 1500
SLOW_CHUNKS = 500
VALUES = 64
PACKET_BYTES = HEADER_BYTES + 4 * VALUES
WINDOW = 256
MOST = 64  # packets in a train, on Linux


class TrainModel(UdpModel):
    """Takes whole trains from its socket and notes how long they are."""

    def __init__(self, *, loss: float) -> None:
        self.trains: list[int] = []
        super().__init__(2 * WINDOW, VALUES, loss=loss, spacing_s=0.0003)
        self._socket.setsockopt(socket.SOL_UDP, UDP_GRO, 1)

    def _receive(self, payload: bytes, port: int) -> None:
        self.trains.append(len(payload) // PACKET_BYTES)
        for begin in range(0, len(payload), PACKET_BYTES):
            super()._receive(payload[begin : begin + PACKET_BYTES], port)


def trains(loss: float) -> tuple[list[int], int]:
    """Those of a tensor once the window has settled, and the window before it."""
    data = np.arange(VALUES * CHUNKS, dtype=np.int32)
    switch = TrainModel(loss=loss)
    # A window without a pace of its own, which would cut trains, too.
    adaptive = Congestion("adaptive")
    with switch, closing(switch.sessions(1, congestion=adaptive)) as (session,):
        for _ in range(10):  # so that the shortest round trip is known, whatever else runs here
            session.all_reduce(data[:VALUES])
        if loss:
            (session.all_reduce(data), session.all_reduce(data))
        window = session._transport.stats().in_flight_limit
        first = len(switch.trains)
        session.all_reduce(data)
        return switch.trains[first:], window


def test_a_window_that_losses_have_made_small_goes_in_two_trains_or_more() -> None:
    lengths, window = trains(loss=0.05)
    assert window < MOST
    assert max(lengths) <= 3 * window / 4  # it may have changed by a few since


def test_the_whole_window_goes_in_trains_as_long_as_the_kernel_takes() -> None:
    lengths, window = trains(loss=0.0)
    assert window == WINDOW
    assert max(lengths) == MOST


def calls_for_two_sums() -> int:
    """Receive calls of one worker."""
    data = np.arange(64 * SLOW_CHUNKS, dtype=np.int32)
    # A window that leaves at a pace sends, and so looks for results, packet by packet.
    unpaced = Congestion("adaptive")
    with (
        UdpModel(spacing_s=0.0001) as switch,  # a fifth of the longest pause
        closing(switch.sessions(1, congestion=unpaced)) as (session,),
    ):
        (session.all_reduce(data), session.all_reduce(data))
        stats = session._transport.stats()
    assert stats.worker.chunks_done == 2 * SLOW_CHUNKS
    return stats.channel.receive_calls


def test_on_a_slow_link_results_are_read_in_groups() -> None:
    # Each alone, there would be twice as many: one call that brings it, one that finds nothing.
    # One of a few attempts: other processes break groups up, and never make any.
    assert any(calls_for_two_sums() < 3 * SLOW_CHUNKS / 2 for _ in range(3))


@pytest.mark.parametrize("base_ns", [MS, 5 * MS // 2, 10 * MS])
def test_what_all_leave_unread_does_not_keep_itself_alive(base_ns: int) -> None:
    """Once all have had long round trips, each holds up the sums of the others by its pauses: they
    must not be as long as that for ever."""
    lanes, longest_ns = 64, 30 * MS
    data, out = np.zeros((2, 2_000 * lanes), np.int32)
    fixed = Congestion("fixed").choice()
    core = WorkerCore(worker_config(1, 2, 2 * lanes, 1), 0, fixed)
    core.submit(1, data.ctypes.data, out.ctypes.data, Collective(0, len(data)), 0)
    arriving = deque((MS, packet) for packet in core.poll_transmit(0, lanes))
    now_ns, trips_ns = MS, []
    while now_ns < 20 * longest_ns:
        due_ns, packet = arriving.popleft()
        now_ns = max(due_ns, now_ns)
        core.on_result(encode(result_of(decode(packet)[0]), np.zeros(1, np.int32)), now_ns)
        # A network that is idle, but at first: what this worker leaves unread, and others do.
        trip_ns = longest_ns if now_ns < longest_ns else base_ns + 2 * core.moderation_ns
        trips_ns.append(trip_ns)
        step_ns = trip_ns // lanes  # results come all along
        for packet in core.poll_transmit(now_ns, lanes):
            last_ns = arriving[-1][0] if arriving else now_ns
            arriving.append((max(now_ns + trip_ns, last_ns + step_ns), packet))
    assert max(trips_ns) == longest_ns
    assert max(trips_ns[-lanes:]) <= base_ns + MS
