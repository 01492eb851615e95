"""Captures of exchanges with the reference switch, said of RoCEv2: of queue pairs, or of a ring."""

from __future__ import annotations

from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether

from ina.protocol.spec import UDP_PORT
from ina.testing.wrapping import InRing, InSends
from tests.worlds.virtual.exchange import JOB, Exchange

IN_SENDS = InSends()


def in_ring(workers: int) -> InRing:
    """Of the exchange's job."""
    return InRing({JOB: [Exchange(workers).at(worker) for worker in range(workers)]})


def said_of_roce(exchange: Exchange, wrapping: InSends) -> Exchange:
    """The same packets, at the same times, with BTH and ICRC around them."""
    frames, arrived = exchange.frames, b""
    exchange.frames = []
    for frame in frames:
        data = bytes(frame)
        if frame[UDP].dport == UDP_PORT:
            arrived, data = data, wrapping.arriving(data)
        else:
            _, data = wrapping.leaving(0, data, arrived)
        exchange.add(Ether(data))
    return exchange
