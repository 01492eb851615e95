"""Results that a switch sends to several workers at once: who gets them, and what if they fail."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager

import numpy as np
import pytest

from ina.host import Session, TransportError, WorkerOptions
from ina.host.shared_results import SharedResults
from ina.host.udp import UdpLink
from ina.protocol.peer import Peer
from ina.protocol.spec import RESULTS_UDP_PORT
from tests.host.sockets import (
    SO_ATTACH_FILTER,
    forbid_setsockopt,
    foreign_packets,
    in_a_thread,
    until,
)
from tests.selection import LONG
from tests.worlds.fakes.controller import FakeController
from tests.worlds.fakes.udp_model import UdpModel, closing

GROUP, TAKEN = "239.192.77.1", "239.192.77.2"
WHOLE = np.arange(64 * 200, dtype=np.int32)


def reduce_all(sessions: list[Session], times: int = 3) -> None:
    for _ in range(times):
        handles = [session.all_reduce(WHOLE, async_op=True) for session in sessions]
        for handle in handles:
            assert (handle.wait(30) == len(sessions) * WHOLE).all()


def all_have_come(session: Session) -> None:
    """The shared results of reduce_all(), also those whose replay was faster on a busy machine."""
    until(lambda: session.stats().shared_packets >= 600)


@contextmanager
def joined(switch: UdpModel, workers: int = 2) -> Iterator[tuple[FakeController, list[Session]]]:
    """A job whose heartbeats are rare: what is told at once is told out of turn."""
    with (
        FakeController(switch, lease_s=60.0, heartbeat_s=20.0) as fake,
        futures.ThreadPoolExecutor(workers) as pool,
    ):
        joining = [
            pool.submit(Session.join, fake.address, "digits", rank, workers)
            for rank in range(workers)
        ]
        with closing([future.result(60) for future in joining]) as sessions:
            yield fake, sessions


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_one_packet_serves_all(workers: int) -> None:
    with UdpModel(group=GROUP) as switch, closing(switch.sessions(workers)) as sessions:
        reduce_all(sessions)
        for session in sessions:
            all_have_come(session)
            stats = session.stats()
            assert stats.packets_received - stats.shared_packets <= stats.retransmissions
            assert stats.refused_results == 0


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_each_thread_receives_its_own_lanes(threads: int) -> None:
    with (
        UdpModel(group=GROUP) as switch,
        closing(switch.sessions(2, threads=[threads, 1])) as sessions,
    ):
        reduce_all(sessions)
        all_have_come(sessions[0])
        stats = sessions[0].stats()
        assert (stats.threads, stats.queues) == (threads, threads)
        # The kernel hands a group's packets to all its sockets; filters leave each its own.
        assert stats.shared_packets <= 600 + stats.retransmissions
        assert stats.passed_on == 0
        assert stats.duplicates <= stats.retransmissions


@pytest.mark.parametrize("threads", [1, 4])
def test_answers_come_to_each_alone(threads: int) -> None:
    with (
        UdpModel(loss=0.05, seed=3, group=GROUP) as switch,
        closing(switch.sessions(3, threads=[threads] * 3)) as sessions,
    ):
        reduce_all(sessions, times=2)
        for session in sessions:
            stats = session.stats()
            assert 0 < stats.shared_packets < stats.packets_received


@pytest.mark.parametrize("threads", [1, 4])
def test_strangers_are_kept_out(threads: int) -> None:
    """Another port of the switch's host, and its port on another host."""
    with UdpModel(group=GROUP) as switch, closing(switch.sessions(1, threads=[threads])) as (own,):
        packets = foreign_packets(32)
        for stranger in (("127.0.0.1", 0), ("127.0.0.2", switch.address[1])):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(stranger)
                via = socket.inet_aton("127.0.0.1")
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, via)
                for packet in packets:
                    sock.sendto(packet, (GROUP, RESULTS_UDP_PORT))
        for packet in packets:  # behind theirs, in each thread's queue
            switch._socket.sendto(packet, (GROUP, RESULTS_UDP_PORT))
        until(lambda: own.stats().refused_results >= len(packets))
        assert own.stats().refused_results == own.stats().shared_packets == len(packets)


def test_two_jobs_of_one_host_keep_apart() -> None:
    """The same group and port: each listens to its own switch."""
    with (
        UdpModel(group=GROUP) as one,
        UdpModel(group=GROUP) as other,
        closing([*one.sessions(1), *other.sessions(1)]) as (ours, theirs),
    ):
        for session in (ours, theirs):
            reduce_all([session])
        assert ours.stats().refused_results == theirs.stats().refused_results == 0
        assert ours.stats().duplicates <= ours.stats().retransmissions


def test_where_nothing_comes_the_controller_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with UdpModel(group=GROUP) as switch:
        switch.mute = True
        with joined(switch) as (fake, sessions):
            deadline = time.monotonic() + 30
            while fake.missing != {0, 1}:
                assert time.monotonic() < deadline
                reduce_all(sessions, times=1)
            before = [session.stats() for session in sessions]
            switch.mute = False
            reduce_all(sessions)
            for session, then in zip(sessions, before, strict=True):
                now = session.stats()
                assert now.shared_packets == 0
                assert now.retransmissions - then.retransmissions < 400  # 600: each of them
                assert not session._link.is_listening
    told = [r for r in caplog.records if "do not come" in r.message]
    named = {r.message.split(": ")[0] for r in told}
    assert named == {f"job 'digits' rank {rank} of 2" for rank in (0, 1)}
    assert all(record.levelname == "WARNING" for record in told)


def test_one_worker_that_hears_nothing_spares_the_others() -> None:
    with UdpModel(group=GROUP) as switch, joined(switch) as (fake, sessions):
        reduce_all(sessions)
        deaf, other = sessions
        deaf._transport.take_own_results()  # as when its Ethernet switch forgot that it listens
        deadline = time.monotonic() + 30
        while fake.missing != {0}:  # what came before it stopped counts at the first look
            assert time.monotonic() < deadline
            reduce_all(sessions, times=1)
        shared = other.stats().shared_packets
        reduce_all(sessions)
        assert other.stats().shared_packets > shared
        assert fake.missing == {0}


def test_a_few_repaired_losses_are_no_silence() -> None:
    with UdpModel(group=GROUP) as switch, joined(switch) as (fake, sessions):
        for session in sessions:
            assert not session._core.member._heart._shared.look()  # type: ignore[union-attr]
        switch.mute = True
        small = [session.all_reduce(WHOLE[:640], async_op=True) for session in sessions]
        for handle in small:
            handle.wait(30)
        for session in sessions:
            assert not session._core.member._heart._shared.look()  # type: ignore[union-attr]
        switch.mute = False
        reduce_all(sessions)
        assert fake.missing == set()


@pytest.mark.parametrize("threads", [1, 4])
def test_no_result_is_told_before_the_packet_that_brought_it(threads: int) -> None:
    """Who looks at the first moment of a burst would else take it for one of its own, for good."""
    with (
        UdpModel(group=GROUP) as switch,
        closing(switch.sessions(2, threads=[threads, 1])) as sessions,
    ):
        transport = sessions[0]._transport
        for _ in range(40 if LONG else 8):
            handles = [session.all_reduce(WHOLE, async_op=True) for session in sessions]
            while not handles[0].done():
                now = transport.stats()
                results = now.worker.chunks_done + now.worker.exponent_rounds
                assert results - now.channel.shared_packets <= now.worker.retransmissions
            for handle in handles:
                handle.wait(30)


def test_one_burst_that_was_lost_and_repaired_is_no_silence() -> None:
    with UdpModel(group=GROUP) as switch, closing(switch.sessions(1)) as (session,):
        shared = SharedResults("worker 0", session._link, session._transport)
        for mute in (True, False, True):
            switch.mute = mute
            reduce_all([session], times=1)
            if not mute:
                until(lambda: session.stats().shared_packets > 0)
            assert not shared.look()
        assert session._link.is_listening


def test_where_the_kernel_refuses_a_filter_copies_are_ignored() -> None:
    """A thread that died of it would send no more heartbeats."""
    with UdpModel(group=GROUP) as switch, closing(switch.sessions(1)) as (session,):
        shared = SharedResults("worker 0", session._link, session._transport)
        switch.mute = True

        def work() -> None:
            forbid_setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER)
            for _ in range(3):
                assert not shared.missing
                session.all_reduce(WHOLE[: 64 * 20])
                shared.look()

        in_a_thread(work)
        assert shared.missing
        switch.install_ports(7, 1, [session._link.own.udp_port], frozenset())
        reduce_all([session])


def test_whom_the_controller_serves_alone_stops_listening() -> None:
    """A worker that is the only one behind its port."""
    with UdpModel() as switch, FakeController(switch, lease_s=60.0, heartbeat_s=0.05) as fake:
        fake.results_host = GROUP
        with closing([Session.join(fake.address, "digits", 0, 1)]) as (session,):
            assert fake.joined[0].takes_shared_results
            assert not session._link.is_listening
            reduce_all([session])
            assert fake.missing == set()


@pytest.mark.parametrize(
    ("group", "why"),
    [("10.1.2.3", "it is no IPv4 multicast group"), (TAKEN, "Address already in use")],
)
def test_who_cannot_listen_says_so_and_joins(
    group: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with UdpModel() as switch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        if group == TAKEN:
            taken.bind((TAKEN, RESULTS_UDP_PORT))
        with FakeController(switch) as fake:
            fake.results_host = group
            with closing([Session.join(fake.address, "digits", 0, 1)]) as (session,):
                assert not fake.joined[0].takes_shared_results
                reduce_all([session])
    (said,) = [r for r in caplog.records if "cannot listen" in r.message]
    assert said.levelname == "WARNING"
    assert f"results at {group}:{RESULTS_UDP_PORT} from 127.0.0.1: " in said.message
    assert why in said.message


def test_where_the_kernel_refuses_all_threads_have_one_socket() -> None:
    with UdpModel(group=GROUP) as switch:
        link = UdpLink.open(Peer.at(switch.address), "127.0.0.1")
        switch.install_ports(7, 1, [link.own.udp_port])
        link.listen(Peer.at((GROUP, RESULTS_UDP_PORT)))

        def work() -> None:
            forbid_setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
            with closing([Session(switch.ticket(7, 1, 0, 1), link, WorkerOptions(threads=4))]) as (
                session,
            ):
                reduce_all([session])
                all_have_come(session)
                stats = session.stats()
                assert (stats.threads, stats.queues) == (4, 1)

        in_a_thread(work)


def test_nothing_is_taken_after_the_end() -> None:
    """Its membership may look while another thread closes the session."""
    with UdpModel(group=GROUP) as switch, closing(switch.sessions(1)) as (session,):
        transport = session._transport
        closer = threading.Thread(target=session.close)
        closer.start()
        transport.take_own_results()
        closer.join(30)
        transport.take_own_results()
        assert not closer.is_alive()


def test_a_group_needs_a_way_there() -> None:
    """A multicast group on an interface that this host does not have."""
    with UdpModel() as switch:
        link = UdpLink.open(Peer.at(switch.address), "127.0.0.1")
        link.listen(Peer.at((GROUP, RESULTS_UDP_PORT)))
        link.stop_listening()
        link.stop_listening()
        with pytest.raises(TransportError, match="cannot listen for results"):
            link.listen(Peer.at(("10.0.0.1", RESULTS_UDP_PORT)))
        assert not link.is_listening
        link.close()
