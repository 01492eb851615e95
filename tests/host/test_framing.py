"""Packets with bytes around header and values: twelve and four, as RoCEv2 has (BTH, ICRC)."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ina._native.host import (
    Framing,
    OperationState,
    RtoLimits,
    Transport,
    TransportOptions,
    WorkerConfig,
    WorkerCore,
)
from ina.host.errors import TransportError
from ina.host.udp import UdpLink, open_socket
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective
from ina.protocol.peer import Peer
from ina.protocol.spec import Kind, ValueType
from ina.testing.frames import parse
from tests.worlds.virtual.cores import worker_config
from tests.worlds.virtual.star import Star

PREFIX = bytes(range(100, 112))
SUFFIX = b"tail"
AROUND = len(PREFIX) + len(SUFFIX)
OTHER, BEHIND = bytes(12), bytes(4)  # a switch's own
FRESH: dict[str, Any] = {"checksum": None, "udp_checksum": None}


def framed(config: WorkerConfig) -> WorkerConfig:
    config.framing = Framing(PREFIX, SUFFIX)
    return config


def test_a_worker_puts_them_in_front_and_takes_them_off() -> None:
    data = np.arange(8, dtype=np.int32)
    out = np.zeros_like(data)
    core = WorkerCore(framed(worker_config(0, 1, 4, 4)))
    core.submit(1, data.ctypes.data, out.ctypes.data, Collective(ValueType.INT32, 8), 0)
    for packet in core.poll_transmit(0):
        assert (packet[:12], packet[-4:]) == (PREFIX, SUFFIX)
        header, values = decode(packet[12:-4])
        assert values.tolist() == data[4 * header.seq : 4 * header.seq + 4].tolist()
        result = encode(replace(header, kind=Kind.RESULT), values)
        core.on_result(result, 1000)
        assert core.counters.malformed == header.seq + 1, "it begins elsewhere"
        core.on_result(OTHER + result + BEHIND, 1000)
    assert core.take_completions() == [1]
    assert (out == data).all()
    core.on_result(PREFIX, 1000)
    assert core.counters.malformed == 3


def test_more_than_a_frame_has_room_for_is_refused() -> None:
    config = worker_config(0, 1, 4, 4)
    config.framing = Framing(bytes(33))
    with pytest.raises(ValueError, match="at most 32 bytes in front of the header, got 33"):
        WorkerCore(config)
    config.framing = Framing(suffix=bytes(33))
    with pytest.raises(ValueError, match="at most 32 bytes behind the values, got 33"):
        WorkerCore(config)


def test_what_does_not_fit_with_them_in_front_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ina.host.udp.socket_mtu_bytes", lambda connected: 1500)
    link = UdpLink.open(Peer.at(("127.0.0.1", 9)), "127.0.0.1")
    try:
        link.check_mtu("rank 0", 1500 - 28)
        link.framing = Framing(PREFIX, SUFFIX)
        link.check_mtu("rank 0", 1500 - 28 - AROUND)
        with pytest.raises(TransportError, match="packets of 1501 bytes do not fit"):
            link.check_mtu("rank 0", 1500 - 28 - AROUND + 1)
    finally:
        link.close()


@pytest.mark.parametrize("shares", [[1, 1], [1, 4]], ids=str)
def test_a_job_over_a_network_that_takes_them_off_and_puts_others_there(shares: list[int]) -> None:
    """So that the switch need not know them: what is between it and the hosts does."""
    star = Star(2, shares=shares, framing=Framing(PREFIX, SUFFIX))
    seen: list[bytes] = []

    def up(frame: bytes) -> bytes:
        parsed = parse(frame)
        seen.append(parsed.payload[:12] + parsed.payload[-4:])
        return replace(parsed, payload=parsed.payload[12:-4], **FRESH).build()

    def down(frame: bytes) -> bytes:
        parsed = parse(frame)
        return replace(parsed, payload=OTHER + parsed.payload + BEHIND, **FRESH).build()

    for port in star.up:
        port.set_tap(up)
    for port in star.down:
        port.set_tap(down)
    parts = [np.arange(5000, dtype=np.int32) + rank for rank in range(2)]
    for result in star.all_reduce(parts):
        assert (result == parts[0] + parts[1]).all()
    assert set(seen) == {PREFIX + SUFFIX}
    assert [worker.breach for worker in star.workers] == ["", ""]


def test_each_thread_gets_the_packets_of_its_lanes() -> None:
    """The kernel finds the lane behind the prefix."""
    switch = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    switch.bind(("127.0.0.1", 0))
    switch.settimeout(0.1)
    stop = threading.Event()

    def answer() -> None:
        while not stop.is_set():
            try:
                payload, source = switch.recvfrom(4096)
            except TimeoutError:
                continue
            header, values = decode(payload[12:-4])
            result = encode(replace(header, kind=Kind.RESULT), values)
            switch.sendto(OTHER + result + BEHIND, source)

    thread = threading.Thread(target=answer)
    thread.start()
    sock = open_socket(Peer.at(switch.getsockname()), "127.0.0.1")
    config = WorkerConfig(
        job=7, epoch=1, rank=0, world_size=1, slots=64, values_per_packet=64,
        stall_timeout_ns=30 * 10**9, rto=RtoLimits(), framing=Framing(PREFIX, SUFFIX),
    )  # fmt: skip
    options = TransportOptions(threads=4)
    transport = Transport.udp(sock.fileno(), config, 1 << 20, options, trains=False)
    try:
        data = np.arange(64 * 200, dtype=np.int32)
        out = np.zeros_like(data)
        what = Collective(ValueType.INT32, data.size)
        operation = transport.submit(data.ctypes.data, out.ctypes.data, what)
        assert operation.wait(30 * 10**9)
        assert operation.state == OperationState.DONE
        assert (out == data).all()
        assert transport.stats().passed_on == 0
        assert transport.stats().worker.malformed == 0
    finally:
        transport.close()
        sock.close()
        stop.set()
        thread.join()
        switch.close()
