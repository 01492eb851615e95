"""A socket for each thread of a worker: who gets what, who gets nothing, and what if not."""

from __future__ import annotations

import ctypes
import socket
import struct
import time
from dataclasses import replace

import numpy as np
import pytest

from ina._native.host import OperationState, RtoLimits, Transport, TransportOptions
from ina.host import OperationTimeoutError, Session, WorkerOptions
from ina.host.stats import SessionStats
from ina.host.udp import open_socket
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective
from ina.protocol.peer import Peer
from ina.protocol.spec import Kind
from tests.host.sockets import (
    DEADLINE_S,
    IP_RECVERR,
    SO_ATTACH_FILTER,
    SO_ATTACH_REUSEPORT_CBPF,
    SO_BINDTODEVICE,
    forbid_setsockopt,
    foreign_packets,
    in_a_thread,
    until,
)
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.virtual.cores import EPOCH, JOB, worker_config

WHOLE = np.arange(64 * 200, dtype=np.int32)
UDP_SEGMENT = 103


def reduce_on(switch: UdpModel, sock: socket.socket, threads: int) -> SessionStats:
    switch.install(7, 1, [sock])
    with Session.direct(switch.ticket(7, 1, 0, 1), sock, WorkerOptions(threads=threads)) as session:
        for _ in range(3):
            assert (session.all_reduce(WHOLE) == WHOLE).all()
        return session.stats()


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_each_thread_receives_its_own_lanes(threads: int) -> None:
    with UdpModel() as switch:
        stats = reduce_on(switch, open_socket(Peer.at(switch.address)), threads)
    assert (stats.threads, stats.queues) == (threads, threads)
    assert stats.packets_received >= 600
    assert stats.passed_on == 0


@pytest.mark.parametrize("own_host", ["127.0.0.1", ""])
def test_a_socket_whose_port_the_caller_chose_keeps_it(own_host: str) -> None:
    """The kernel then leaves it its port when it is unconnected."""
    with UdpModel() as switch:
        with open_socket(Peer.at(switch.address)) as free:
            port = free.getsockname()[1]
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((own_host, port))
        sock.connect(switch.address)
        stats = reduce_on(switch, sock, 4)
    assert (stats.queues, stats.passed_on) == (4, 0)


def test_the_address_stays_nobody_elses() -> None:
    with UdpModel() as switch, closing(switch.sessions(1, threads=[4])) as (session,):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thief,
            pytest.raises(OSError, match="Address already in use"),
        ):
            thief.bind(session._link.own.place)
        assert (session.all_reduce(WHOLE) == WHOLE).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_strangers_are_kept_out(threads: int) -> None:
    """Another port of the switch's host, and its port on another host."""
    with UdpModel() as switch, closing(switch.sessions(1, threads=[threads])) as (session,):
        (host, port), to = switch.address, session._link.own.place
        packets = foreign_packets(32)
        for stranger in ((host, 0), ("127.0.0.2", port)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(stranger)
                for packet in packets:
                    sock.sendto(packet, to)
        for packet in packets:  # behind theirs, in each thread's queue
            switch._socket.sendto(packet, to)
        until(lambda: session.stats().refused_results >= len(packets))
        assert session.stats().refused_results == len(packets)
        assert session.stats().queues == threads


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_switch_that_goes_is_noticed_and_threads_sleep_on(threads: int) -> None:
    """What the kernel says of it is taken out of the sockets: else poll() would not sleep."""
    with (
        UdpModel() as switch,
        closing(switch.sessions(1, op_timeout_s=0.5, threads=[threads])) as (session,),
    ):
        assert (session.all_reduce(WHOLE) == WHOLE).all()
        switch.close()
        before = session._transport.stats()
        with pytest.raises(OperationTimeoutError):
            session.all_reduce(WHOLE)
        after = session._transport.stats()
        assert after.channel.refused > before.channel.refused == 0
        assert after.refused_since_result > 0
        sent = after.worker.packets_sent - before.worker.packets_sent
        calls = after.channel.receive_calls - before.channel.receive_calls
        # Each packet is answered by an error, at most. A thread that does not sleep makes a
        # million calls.
        assert calls < 10 * sent + 1000


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_queue_has_room_of_its_own(threads: int) -> None:
    with UdpModel(loss=0.02) as switch:
        sock = open_socket(Peer.at(switch.address), "127.0.0.1")
        switch.install(JOB, EPOCH, [sock])
        config = worker_config(0, 1, slots=64, values=64, stall_s=DEADLINE_S)
        transport = Transport.udp(sock.fileno(), config, 2048, TransportOptions(threads=threads))
        try:
            out = np.zeros_like(WHOLE)
            operation = transport.submit(
                WHOLE.ctypes.data, out.ctypes.data, Collective(0, WHOLE.size)
            )
            assert operation.wait(int(DEADLINE_S * 1e9))
            assert operation.state == OperationState.DONE
            assert (out == WHOLE).all()
            stats = transport.stats()
        finally:
            transport.close()
            sock.close()
    assert stats.queues == threads
    room = max(stats.receive_buffer_bytes // threads // (2 * 280 + 512), 4)
    assert stats.in_flight_limit == threads * room


def test_a_thread_looks_in_time_at_what_another_has_sent_for_it() -> None:
    """A train has results of two shares; the thread that gets it sends what comes next of both.

    That is lost. It is missed soon, for there has been a round trip now, and long before the
    other thread meant to look.
    """
    config = worker_config(0, 1, slots=8, values=64, stall_s=2 * DEADLINE_S)
    config.rto = RtoLimits(initial_ns=10**11, min_ns=2_000_000, max_ns=10**11)
    tensor = np.ones(8 * 64, np.int32)  # two packets for each of four lanes
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.settimeout(DEADLINE_S)
        sock = open_socket(Peer.at(switch.getsockname()))
        transport = Transport.udp(sock.fileno(), config, 2048, TransportOptions(threads=2))
        try:
            transport.submit(tensor.ctypes.data, tensor.ctypes.data, Collective(0, tensor.size))
            sent: dict[int, bytes] = {}
            while len(sent) < 4:
                packet, worker = switch.recvfrom(2048)
                sent[decode(packet)[0].seq] = packet
            both = [answer(sent[seq]) for seq in (0, 2)]
            train = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", len(both[0])))]
            switch.sendmsg([b"".join(both)], train, 0, worker)
            times = dict.fromkeys(range(8), 0)
            end_s = time.monotonic() + DEADLINE_S
            while times[6] < 2:
                assert time.monotonic() < end_s
                times[decode(switch.recv(2048))[0].seq] += 1
            assert transport.stats().passed_on == 1
        finally:
            transport.close()
            sock.close()


def answer(packet: bytes) -> bytes:
    """The result of the only worker's packet."""
    header, values = decode(packet)
    return encode(replace(header, kind=Kind.RESULT), values)


@pytest.mark.parametrize(
    ("level", "option", "name"),
    [
        (socket.SOL_SOCKET, socket.SO_REUSEPORT, "SO_REUSEPORT"),
        (socket.SOL_SOCKET, SO_ATTACH_FILTER, "SO_ATTACH_FILTER"),
        (socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, "SO_ATTACH_REUSEPORT_CBPF"),
        (socket.IPPROTO_IP, IP_RECVERR, "IP_RECVERR"),
    ],
)
def test_where_the_kernel_refuses_all_threads_have_one_socket(
    level: int, option: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with UdpModel(loss=0.02) as switch:
        sock = open_socket(Peer.at(switch.address))

        def work() -> None:
            forbid_setsockopt(level, option)
            stats = reduce_on(switch, sock, 4)
            assert (stats.threads, stats.queues) == (4, 1)

        in_a_thread(work)
    (said,) = [r for r in caplog.records if "one socket for 4 threads on UDP" in r.message]
    assert said.levelname == "WARNING"
    assert said.message.endswith(f"{name}: Operation not permitted")


def test_a_socket_that_is_bound_to_a_device_stays_the_only_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with UdpModel() as switch:
        sock = open_socket(Peer.at(switch.address))
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, b"lo")
        except PermissionError:
            sock.close()
            pytest.skip("Linux before 5.7 wants CAP_NET_RAW for SO_BINDTODEVICE")
        assert reduce_on(switch, sock, 2).queues == 1
    assert "the socket is bound to a device" in caplog.text


def test_a_socket_of_another_network_namespace_stays_the_only_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clone_newnet = 0x40000000
    with UdpModel() as switch:
        sock = open_socket(Peer.at(switch.address))

        def work() -> None:
            if ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) != 0:
                sock.close()
                pytest.skip(f"no network namespace here: errno {ctypes.get_errno()}")
            assert reduce_on(switch, sock, 2).queues == 1

        in_a_thread(work)
    assert "one socket for 2 threads on UDP" in caplog.text
