"""Stars whose links have a rate and a queue, in packets of one size: what a window does to them."""

from __future__ import annotations

import numpy as np

from ina._native.congestion import Choice
from ina.protocol.spec import HEADER_BYTES
from ina.sim.ways import Way
from tests.worlds.virtual.star import Star

GBIT = 10**9
ANY = 1 << 30
_FRAME_BYTES = 66  # Ethernet with preamble and gap, IPv4, UDP: what a packet takes besides


def wire_bytes(values: int) -> int:
    """What a packet with so many values takes of a link."""
    return HEADER_BYTES + 4 * values + _FRAME_BYTES


def shaped(
    values: int = 256,
    bits_per_s: int = GBIT,
    queue_packets: int = ANY,
    mark_packets: int = ANY,
    loss: float = 0.0,
) -> Way:
    """A link of 20 µs. A packet that finds a queue so long is lost, or marked."""
    return Way(
        bits_per_s=bits_per_s,
        delay_ns=20_000,
        queue_bytes=queue_packets * wire_bytes(values),
        marking="step",
        mark_bytes=mark_packets * wire_bytes(values),
        loss=loss,
    )


def star_of(
    workers: int, way: Way, window: str = "adaptive", values: int = 256, **options: object
) -> Star:
    """Of workers with 256 packets in flight at most."""
    choice = Choice(window)
    return Star(workers, slots=512, values=values, way=way, window=choice, **options)  # type: ignore[arg-type]


def reduce(star: Star, tensors: int, chunks: int) -> float:
    """Reduces int32 tensors one after the other; returns the share of the wire that they had.

    1.0: the time that their packets take on one link, one behind the other, and one way back.
    """
    data = np.zeros(chunks * star.values, np.int32)
    begin_ns, done = star.now_ns, len(star.done[0])
    for number in range(done + 1, done + tensors + 1):
        for rank in range(len(star.workers)):
            star.submit(rank, number, data, data)
        star.run(number)
    link = star.up[0].link
    packet_ns = wire_bytes(star.values) * 8e9 / link.bits_per_s
    least_ns = tensors * ((chunks + 1) * packet_ns + 2 * link.delay_ns)
    return least_ns / (star.now_ns - begin_ns)


def longer_queues(star: Star) -> None:
    """From now on nothing is lost for want of room."""
    for port in (*star.up, *star.down):
        queue = port.queue
        queue.limit_bytes = 1 << 40
        port.queue = queue
