"""Streams that hold threads and say nothing do not keep others from their work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc, rpc_code

from ina.switch.p4runtime.arbitration import MAX_ROLES
from ina.switch.p4runtime.status import StatusError
from ina.switch.p4runtime.streams import MAX_STREAMS, MAX_STREAMS_A_PEER, StreamLimit
from ina.switch.server import SoftSwitch
from tests.switch.p4runtime.conftest import Connect, refused
from tests.worlds.fakes.p4runtime import DEADLINE_S, Client, features_config

IDLE = 200


@contextmanager
def idle_streams(addr: str, count: int) -> Iterator[list[Any]]:
    """Open streams that never send; on one channel, as one process would hold them."""
    silence: queue.SimpleQueue[None] = queue.SimpleQueue()
    with grpc.insecure_channel(addr) as channel:
        stub: Any = p4r_grpc.P4RuntimeStub(channel)
        streams = [stub.StreamChannel(iter(silence.get, None)) for _ in range(count)]
        try:
            yield streams
        finally:
            for stream in streams:
                stream.cancel()
            for _ in streams:
                silence.put(None)


def test_idle_streams_starve_nobody(switch: SoftSwitch, connect: Connect) -> None:
    primary = connect().become_primary(1)
    with idle_streams(switch.grpc_addr, IDLE):
        primary.set_config(features_config())  # calls go on
        for _ in range(20):
            primary.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
        second = connect()  # and a new controller gets in, from the same address
        second.become_primary(2)
        second.set_config(features_config())
    assert connect().become_primary(3).election_id == 3


def test_the_longest_idle_stream_gives_way(switch: SoftSwitch, connect: Connect) -> None:
    talker = connect().become_primary(1)
    with idle_streams(switch.grpc_addr, MAX_STREAMS_A_PEER) as streams:
        codes = queue.SimpleQueue[Any]()

        def watch(stream: Any) -> None:
            try:
                list(stream)
            except grpc.RpcError as error:
                codes.put((error.code(), error.details()))

        for stream in streams:
            threading.Thread(target=watch, args=(stream,), daemon=True).start()
        code, details = codes.get(timeout=DEADLINE_S)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "said nothing" in details
        assert codes.empty()
        talker.arbitrate(5)  # the one that had introduced itself stays
        assert talker.standing() == (rpc_code.OK, 5)


def test_roles_are_limited(connect: Connect) -> None:
    client: Client | None = None
    for number in range(MAX_ROLES):
        client = connect(role=f"role {number}")
        client.become_primary(1)
        client.close()
    last = connect(role="one more")
    last.arbitrate(1)
    refused(last.receive, rpc_code.RESOURCE_EXHAUSTED, "roles are known")


class FakeStream:
    """A stream of ``peer``."""

    def __init__(self, peer: str, introduced: bool = False) -> None:
        self.peer = peer
        self.introduced = introduced
        self.expelled = False

    def expel(self, why: StatusError) -> None:
        assert why.code == rpc_code.RESOURCE_EXHAUSTED
        self.expelled = True


def test_one_peer_cannot_take_all_places() -> None:
    limit = StreamLimit()
    greedy = [FakeStream("10.0.0.1", introduced=True) for _ in range(MAX_STREAMS_A_PEER)]
    for stream in greedy:
        limit.enter(stream)
    with pytest.raises(StatusError, match=r"10\.0\.0\.1 has 16 streams open already"):
        limit.enter(FakeStream("10.0.0.1"))
    limit.enter(FakeStream("10.0.0.2"))
    limit.leave(greedy[0])
    limit.enter(FakeStream("10.0.0.1"))


def test_of_all_the_oldest_that_said_nothing_goes_first() -> None:
    limit = StreamLimit()
    streams = [FakeStream(f"10.0.0.{n}", introduced=n % 2 == 0) for n in range(MAX_STREAMS)]
    for stream in streams:
        limit.enter(stream)
    limit.enter(FakeStream("10.0.1.1", introduced=True))
    assert [n for n, stream in enumerate(streams) if stream.expelled] == [1]
    for n in range(1, MAX_STREAMS // 2):
        limit.enter(FakeStream(f"10.0.2.{n}", introduced=True))
    with pytest.raises(StatusError, match="32 streams are open already"):
        limit.enter(FakeStream("10.0.3.1"))
    assert not any(stream.expelled for stream in streams if stream.introduced)
