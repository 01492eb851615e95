"""The native transport's own switches: no offloads, a small receive buffer, a limit in flight."""

from __future__ import annotations

import os

import numpy as np
import pytest

from ina._native.host import (
    OperationState,
    RtoLimits,
    Transport,
    TransportOptions,
    WorkerConfig,
)
from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions, udp
from ina.host.errors import TransportError
from ina.host.udp import UdpLink, open_socket
from ina.protocol.collective import Collective
from ina.protocol.peer import Peer
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.processes.threads import SHORT_SLICE_NS, NewThreads, slice_ns, takes_slices


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize(("buffer_bytes", "max_in_flight"), [(8 << 20, 0), (8 << 20, 3), (2048, 0)])
def test_it_works_with_less(
    trains: bool, loss: float, buffer_bytes: int, max_in_flight: int
) -> None:
    with UdpModel(slots=64, values=64, loss=loss) as switch:
        sock = open_socket(Peer.at(switch.address), "127.0.0.1")
        switch.install(7, 1, [sock])
        config = WorkerConfig(
            job=7,
            epoch=1,
            rank=0,
            world_size=1,
            slots=64,
            values_per_packet=64,
            stall_timeout_ns=30_000_000_000,
            rto=RtoLimits(),
        )
        options = TransportOptions(max_in_flight=max_in_flight)
        transport = Transport.udp(sock.fileno(), config, buffer_bytes, options, trains)
        sock.close()  # the transport has its own duplicate
        try:
            data = np.arange(64 * 200, dtype=np.int32)
            out = np.zeros_like(data)
            operation = transport.submit(
                data.ctypes.data, out.ctypes.data, Collective(0, data.size)
            )
            assert operation.wait(30_000_000_000)
            assert operation.state == OperationState.DONE
            assert (out == data).all()
            stats = transport.stats()
        finally:
            transport.close()
    assert (stats.gso, stats.gro) == (trains, trains)
    if max_in_flight:
        assert stats.in_flight_limit == max_in_flight
    elif buffer_bytes == 2048:
        assert stats.in_flight_limit < stats.window == 32
    assert stats.worker.chunks_done == 200
    assert stats.worker.mismatched == stats.worker.malformed == 0


def test_its_thread_gives_way_to_whoever_wakes_it() -> None:
    new = NewThreads()
    with UdpModel() as switch, closing(switch.sessions(1)) as (session,):
        session.all_reduce(np.ones(1, np.int32))  # the thread is in its loop
        assert os.sched_getscheduler(new.only("ina-worker")) == os.SCHED_BATCH


@pytest.mark.skipif(not takes_slices(), reason="Linux 6.12 and later take slices")
def test_threads_that_packets_wait_for_have_short_turns() -> None:
    new = NewThreads()
    with (
        Embedded(values=64) as embedded,
        Session.join(embedded.controller_addr, "job", 0, 1) as session,
    ):
        session.all_reduce(np.ones(1, np.int32))  # the threads are in their loops
        for name in ("ina-worker", "ina-port-loop"):
            assert slice_ns(new.only(name)) == SHORT_SLICE_NS
        assert os.sched_getscheduler(new.only("ina-port-loop")) == os.SCHED_OTHER
        assert slice_ns(os.getpid()) != SHORT_SLICE_NS  # a caller's threads are as they were


def test_packets_that_the_first_link_does_not_take_whole_are_refused() -> None:
    link = UdpLink.open(Peer.at(("127.0.0.1", 9)), "127.0.0.1")
    try:
        link.check_mtu("rank 0", 9000)
        with pytest.raises(
            TransportError, match=r"^rank 0: .* MTU towards UDP 127.0.0.1:9 is \d+;"
        ):
            link.check_mtu("rank 0", 70_000)
    finally:
        link.close()


def test_such_a_job_cannot_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp, "IP_UDP_HEADER_BYTES", 1 << 17)  # no loopback is that wide
    with Embedded(values=64) as embedded, pytest.raises(TransportError, match="do not fit"):
        Session.join(
            embedded.controller_addr, "too-wide", 0, 1, WorkerOptions(transport="udp", timeout_s=30)
        )
