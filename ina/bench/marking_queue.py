"""A bounded queue before a link of a known rate, that marks (ECN) above a threshold.

The kernels of many machines have a token bucket and no queue that marks. So a BPF program before
the bucket reckons how much waits there: what has come, less what the rate has let go, less the
burst that an idle link lets pass at once. A packet that finds more than the threshold is marked if
it is ECN-capable; one that finds no room is dropped. A super-packet (GSO) is one packet, as the
bucket sees it. What each did is counted, UDP apart from all else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ina import netns
from ina.bench import bpf
from ina.bench.bpf import Label, Step, Wide

_SHIFT = 10
"""Binary digits of a byte's time behind the point."""
_LEN, _DATA, _DATA_END, _WIRE_LEN, _GSO_SEGS = 0, 76, 80, 160, 164
"""Places in ``struct __sk_buff``."""
_PROTOCOL_AT, _UDP = 14 + 9, 17
_LOOKUP, _NOW, _SET_CE = 1, 5, 97
"""Numbers of helpers."""
_NEXT, _DROP = -1, 2
"""Verdicts of TCX."""
_FREE, _LONGEST = 0, 8
"""Places of what is shared: when the queue will be empty; the most that waited, in nanoseconds."""
_CLASSES = {"udp": 16, "rest": 48}
_PACKETS, _BYTES, _MARKED, _DROPPED = 0, 8, 16, 24
_WORDS = 10
_CLASS, _SEGMENTS = -16, -24
"""Places on the program's stack."""


@dataclass(frozen=True)
class Counts:
    """Since the queue began; a super-packet counts as the packets in it."""

    packets: int
    """That were let in; of them so many"""
    bytes: int
    """with headers from Ethernet's on, and"""
    marked: int
    dropped: int
    """Not let in."""


@dataclass(frozen=True)
class QueueCounts:
    """What a queue has counted so far."""

    udp: Counts
    rest: Counts
    waiting_bytes: int
    """Now."""
    longest_bytes: int
    """That waited, since the beginning."""


class MarkingQueue:
    """At one end of a link that a token bucket shapes. Close it when the link goes."""

    def __init__(
        self, end: netns.End, rate_bit_s: float, burst_bytes: int, queue_bytes: int, mark_bytes: int
    ) -> None:
        """``burst_bytes``: of the bucket, whose own queue must be longer than ``queue_bytes``.
        ``mark_bytes``: what may wait without a mark; 0: nothing is marked.

        Raises :class:`~ina.bench.bpf.BpfError`: this kernel does not let it; NetnsError.
        """
        byte_ns = 8e9 / rate_bit_s
        self._byte_ns, self._burst_bytes = byte_ns, burst_bytes
        self._words = bpf.Words(_WORDS)
        try:
            code = _program(
                self._words.descriptor,
                byte=round(byte_ns * (1 << _SHIFT)),
                mark_ns=round((burst_bytes + mark_bytes) * byte_ns) if mark_bytes else (1 << 62),
                full_ns=round((burst_bytes + queue_bytes) * byte_ns),
            )
            self._attached = bpf.Attached(end, "ina_mark", bpf.assembled(code))
        except BaseException:
            self._words.close()
            raise

    def look(self) -> QueueCounts:
        """Raises :class:`~ina.bench.bpf.BpfError`."""
        words = self._words.read()
        udp, rest = (Counts(*words[at // 8 : at // 8 + 4]) for at in _CLASSES.values())
        waits_ns = words[_FREE // 8] - time.monotonic_ns()
        return QueueCounts(udp, rest, self._waiting(waits_ns), self._waiting(words[_LONGEST // 8]))

    def _waiting(self, busy_ns: int) -> int:
        """Bytes that an idle link's burst has no room for."""
        return max(0, round(busy_ns / self._byte_ns - self._burst_bytes))

    def close(self) -> None:
        """The link has its bucket's queue alone from now on. Once."""
        self._attached.close()
        self._words.close()


def _program(words: int, byte: int, mark_ns: int, full_ns: int) -> list[Step | Label | Wide]:
    """r6: the packet; r7: what is shared; r8: the packet's time at the link; r9: now."""
    return [
        Step(bpf.MOVE, 6, 1),
        Step(bpf.STORE_32_NOW, 10, offset=-4, value=0),
        Step(bpf.MOVE, 2, 10),
        Step(bpf.ADD_NOW, 2, value=-4),
        Wide(1, words, is_map=True),
        Step(bpf.CALL, value=_LOOKUP),
        Step(bpf.IF_EQUAL_NOW, 0, value=0, to="pass"),
        Step(bpf.MOVE, 7, 0),
        Step(bpf.LOAD, 8, 6, _WIRE_LEN),
        Step(bpf.MULTIPLY_NOW, 8, value=byte),
        Step(bpf.SHIFT_RIGHT_NOW, 8, value=_SHIFT),
        Step(bpf.CALL, value=_NOW),
        Step(bpf.MOVE, 9, 0),
        *_sort(),
        # r1: when the queue will be empty, now at the earliest; r2: what waits.
        Step(bpf.LOAD_64, 1, 7, _FREE),
        Step(bpf.IF_AT_LEAST, 1, 9, to="busy"),
        Step(bpf.STORE, 7, 9, _FREE),
        Step(bpf.MOVE, 1, 9),
        Label("busy"),
        Step(bpf.MOVE, 2, 1),
        Step(bpf.SUBTRACT, 2, 9),
        Step(bpf.MOVE, 3, 2),
        Step(bpf.ADD, 3, 8),
        Wide(4, full_ns),
        Step(bpf.IF_GREATER, 3, 4, to="drop"),
        Step(bpf.ATOMIC, 7, 8, _FREE),
        Step(bpf.LOAD_64, 4, 7, _LONGEST),
        Step(bpf.IF_AT_LEAST, 4, 3, to="shorter"),
        Step(bpf.STORE, 7, 3, _LONGEST),
        Label("shorter"),
        *_count(_PACKETS),
        Step(bpf.LOAD, 5, 6, _WIRE_LEN),
        Step(bpf.ATOMIC, 4, 5, _BYTES),
        Wide(4, mark_ns),
        Step(bpf.IF_AT_LEAST, 4, 2, to="pass"),
        Step(bpf.MOVE, 1, 6),
        Step(bpf.CALL, value=_SET_CE),
        Step(bpf.IF_EQUAL_NOW, 0, value=0, to="pass"),
        *_count(_MARKED),
        Label("pass"),
        Step(bpf.MOVE_NOW, 0, value=_NEXT),
        Step(bpf.EXIT),
        Label("drop"),
        *_count(_DROPPED),
        Step(bpf.MOVE_NOW, 0, value=_DROP),
        Step(bpf.EXIT),
    ]


def _sort() -> list[Step | Label | Wide]:
    """Puts on the stack where a packet of its kind is counted, and how many packets it is."""
    return [
        Step(bpf.MOVE, 4, 7),
        Step(bpf.ADD_NOW, 4, value=_CLASSES["rest"]),
        Step(bpf.LOAD, 1, 6, _DATA),
        Step(bpf.LOAD, 2, 6, _DATA_END),
        Step(bpf.MOVE, 3, 1),
        Step(bpf.ADD_NOW, 3, value=_PROTOCOL_AT + 1),
        Step(bpf.IF_GREATER, 3, 2, to="sorted"),
        Step(bpf.LOAD_BYTE, 1, 1, _PROTOCOL_AT),
        Step(bpf.IF_NOT_EQUAL_NOW, 1, value=_UDP, to="sorted"),
        Step(bpf.ADD_NOW, 4, value=_CLASSES["udp"] - _CLASSES["rest"]),
        Label("sorted"),
        Step(bpf.STORE, 10, 4, _CLASS),
        Step(bpf.LOAD, 1, 6, _GSO_SEGS),
        Step(bpf.IF_NOT_EQUAL_NOW, 1, value=0, to="several"),
        Step(bpf.MOVE_NOW, 1, value=1),
        Label("several"),
        Step(bpf.STORE, 10, 1, _SEGMENTS),
    ]


def _count(at: int) -> list[Step | Label | Wide]:
    """Leaves in r4 where it counted."""
    return [
        Step(bpf.LOAD_64, 4, 10, _CLASS),
        Step(bpf.LOAD_64, 5, 10, _SEGMENTS),
        Step(bpf.ATOMIC, 4, 5, at),
    ]
