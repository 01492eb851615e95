"""What is asked for again: what is lost, and not what is late."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ina.embed.bags import Bags
from ina.extension.embed import ClientConfig, GroupConfig, Node, TableSpec

MS = 1_000_000
ROWS = 80
"""Of 64 values: with 1,400 bytes a part, 15 parts."""
_KIND_OFFSET, _HEADER_BYTES = 1, 32
_LOOKUP = 1
Packets = list[tuple[int, bytes]]


class Pair:
    """Host 0 asks, host 1 answers."""

    def __init__(self) -> None:
        tables = [TableSpec(rows=ROWS, dim=64, first_owner=1)]
        self.asker, self.owner = (
            Node(GroupConfig(key=7, host=host, hosts=2, tables=tables), ClientConfig())
            for host in range(2)
        )
        bags = Bags.of(np.arange(ROWS), limit=ROWS)
        self.asker.look_up(0, 0, *bags.address, False)

    def asks(self, now_ns: int) -> list[bytes]:
        """Packets of the asker that leave now."""
        self.asker.poll(now_ns)
        found = [packet for _, packet in self.asker.take_packets(now_ns)]
        assert all(packet[_KIND_OFFSET] == _LOOKUP for packet in found)
        return found

    def answers(self, asked: list[bytes], now_ns: int) -> list[bytes]:
        """Packets of the owner."""
        for packet in asked:
            self.owner.receive(0, packet, now_ns)
        return [packet for _, packet in self.owner.take_packets(now_ns)]


def wanted(packet: bytes) -> list[int]:
    """Parts that a look-up asks for."""
    (mask,) = struct.unpack_from("<Q", packet, _HEADER_BYTES)
    return [part for part in range(64) if mask >> part & 1]


@pytest.mark.parametrize("lost", [[], [0], [3, 7], [14], list(range(15))])
def test_only_what_is_lost_is_asked_for_again(lost: list[int]) -> None:
    pair = Pair()
    first = pair.answers(pair.asks(0), 0)
    assert len(first) == 15
    late_ns = 120 * MS  # beyond the first time limit
    (probe,) = pair.asks(late_ns)
    assert len(wanted(probe)) == 1
    came = [packet for part, packet in enumerate(first) if part not in lost]
    again: list[bytes] = []
    for packet in came:
        pair.asker.receive(1, packet, late_ns)
        again += pair.asks(late_ns)
    assert again == []
    (answer,) = pair.answers([probe], late_ns)
    pair.asker.receive(1, answer, late_ns)
    again = pair.asks(late_ns)
    left = [part for part in lost if part not in wanted(probe)]
    assert [wanted(packet) for packet in again] == ([left] if left else [])
    for packet in pair.answers(again, late_ns):
        pair.asker.receive(1, packet, late_ns)
    assert pair.asker.is_done(1)
    assert pair.asks(10 * late_ns) == []


def test_each_part_that_comes_gives_the_others_more_time() -> None:
    pair = Pair()
    first = pair.answers(pair.asks(0), 0)
    now_ns = 0
    for packet in first:
        now_ns += 35 * MS
        assert pair.asks(now_ns) == []
        pair.asker.receive(1, packet, now_ns)
    assert pair.asker.is_done(1)
