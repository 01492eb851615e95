"""A window in Python: what it is told of a batch of results, and what it says (docs/own_window.md).

It runs where the algorithms of the table do, in the simulator and on the wire, and is called once a
batch of results, never for a packet.
"""

from __future__ import annotations

import abc
from typing import NamedTuple


class Batch(NamedTuple):
    """The results that were read together, and what was found since the batch before.

    A result is the answer to one of this worker's packets: the sum that it is part of. A round trip
    is the time from sending a packet to its answer, of packets that were sent once; most hold a
    wait for other workers.
    """

    now_ns: int
    """Of a clock that only goes forward."""
    answers: int
    """Results, at least 1."""
    marked: int
    """Of them: a queue on the way was long (ECN), also on that of another worker's part."""
    marked_here: int
    """Of them: the contribution that completed the sum met one, or the result itself."""
    losses: int
    """Times that packets were found lost, one or several at a time."""
    timeouts: int
    """Times that nothing was heard for a retransmission timeout."""
    in_flight: int
    """Packets, with those that are answered here."""
    latest_ns: int
    """Round trip of the newest answer; 0: its packet was sent more than once."""
    mean_ns: int
    """Moving average of all round trips, weight 1/8; 0: none so far."""
    shortest_ns: int
    """Of the last ten seconds or so; 0: none so far."""
    was_last: int
    """Answers to packets that completed a sum: no wait for other workers is in their round trips,
    which are, in this batch,"""
    was_last_mean_ns: int
    """on average so long, and"""
    was_last_shortest_ns: int
    """the shortest; both 0 where there are none."""


class Pace(NamedTuple):
    """At which intervals packets leave that the window allows."""

    gap_ns: float = 0
    """From one to the next, on average; 0: as they come."""
    burst_packets: int = 1
    """So many may go together after a pause, at least 1."""


class Window(abc.ABC):
    """How many packets a worker has in flight. A subclass decides it, in :meth:`on_batch`.

    Options are numbers, which its constructor takes by name. A worker has several windows where
    several threads, or several trees of switches, share its packets: each decides for its share.
    What it raises ends the run with :class:`~ina.congestion.WindowError`.
    """

    packets: float
    """At most so many in flight, at least 1. The whole ones count, and none beyond `largest`."""
    pace: Pace = Pace()
    """As they come, unless it is set."""

    def __init__(self, largest: int) -> None:
        """`largest`: packets; what the job's slots and the receive buffer allow."""
        self.largest = largest
        self.packets = largest

    @abc.abstractmethod
    def on_batch(self, batch: Batch) -> None:
        """Sets `packets`, and `pace` where it likes, by what has happened.

        On the wire it is called from the transport's thread, which sends nothing meanwhile: it must
        not wait for anything, nor call its session.
        """
