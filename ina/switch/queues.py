"""Queues before the links of a switch, in the caller's own time.

A pipeline by itself knows of a queue only what the packets of one call left in it. Here what leaves
waits for its link: queues last from call to call, and drain as time passes. So a program that looks
at queues (ECN) meets, without a socket or a clock, the depths that links of this rate would have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ina.errors import InvalidInputError

WIRE_GAP_BYTES = 24
"""Of Ethernet around a frame: preamble, checksum, gap."""


class LinkQueues:
    """One queue without end for each egress port; all links have one rate."""

    def __init__(self, bits_per_s: int, wire_gap_bytes: int = WIRE_GAP_BYTES) -> None:
        if bits_per_s <= 0:
            raise InvalidInputError(f"a link of {bits_per_s} bit/s never sends anything")
        self._bits_per_s = bits_per_s
        self._wire_gap_bytes = wire_gap_bytes
        self._now_ns = 0
        self._waiting: dict[int, deque[int]] = {}
        """By port: when each packet's last bit is sent, in order."""

    def depths(self, now_ns: int) -> dict[int, int]:
        """Packets at each port whose last bit is not sent yet; ports without any are left out.

        Raises InvalidInputError if time has gone backwards.
        """
        if now_ns < self._now_ns:
            raise InvalidInputError(f"queues are at {self._now_ns} ns: {now_ns} ns is over")
        self._now_ns = now_ns
        for waiting in self._waiting.values():
            while waiting and waiting[0] <= now_ns:
                waiting.popleft()
        self._waiting = {port: waiting for port, waiting in self._waiting.items() if waiting}
        return {port: len(waiting) for port, waiting in self._waiting.items()}

    def put(self, packets: Iterable[tuple[int, bytes]]) -> list[int]:
        """Packets that leave now, each with its port; returns when each one's last bit is sent."""
        sent_ns = []
        for port, packet in packets:
            waiting = self._waiting.setdefault(port, deque())
            bits = 8 * (len(packet) + self._wire_gap_bytes)
            start_ns = waiting[-1] if waiting else self._now_ns
            waiting.append(start_ns - (-bits * 10**9 // self._bits_per_s))
            sent_ns.append(waiting[-1])
        return sent_ns
