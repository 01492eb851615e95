"""What a worker does when the controller says what its windows shall be, and tells of them. No I/O.

The controller's last word counts, also against what a mapping says that comes later: it says it
anew whenever it has changed, and first of all on each stream. What the session itself was given as
an algorithm counts before that; a cap holds for any.
"""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from ina.congestion import Choice, Congestion, CongestionError
from ina.extension.host import EngineStats
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)


class WindowsTransport(Protocol):
    """What this needs of a :class:`~ina.extension.host.TransportEngine`."""

    def set_congestion(self, choice: Choice | None, most_packets: int) -> None: ...  # noqa: D102


class Windows:
    """One worker's. Thread-safe."""

    def __init__(self, own: Congestion | None) -> None:
        """`own`: what the session was given; None: as the controller says."""
        self.lock = threading.RLock()
        """Held while another mapping is given what :meth:`of` says."""
        self._own = own
        self._told: Congestion | None = None  # by the controller, since it joined
        self._in_use = own or Congestion()
        self._most_packets = 0
        self._number = 0

    def of(self, ticket: Congestion) -> Congestion:
        """What a mapping begins with whose ticket has `ticket`; from now on that is in use."""
        with self.lock:
            self._in_use = self._own or self._told or ticket
            return self._in_use

    def take(self, word: pb2.Windows, transport: WindowsTransport) -> None:
        """Go by the controller's word from now on. Windows that stay as they are do not begin anew.

        An algorithm that this version of ina has not is left; its cap holds.
        """
        with self.lock:
            if word.HasField("congestion"):
                self._told = self._known(word.congestion) or self._told
            wanted = self._own or self._told or self._in_use
            choice = None if wanted == self._in_use else wanted.choice()
            if choice is not None or word.most_packets != self._most_packets:
                transport.set_congestion(choice, word.most_packets)
            self._in_use, self._most_packets = wanted, word.most_packets
            self._number = word.number

    def state(self, stats: EngineStats) -> pb2.WindowState:
        """For a heartbeat."""
        with self.lock:
            congestion = pb2.Congestion(
                algorithm=self._in_use.algorithm, options=self._in_use.options
            )
            state = pb2.WindowState(
                number=self._number,
                congestion=congestion,
                is_own=self._own is not None,
                most_packets=self._most_packets,
            )
        worker = stats.worker
        state.packets, state.largest = stats.in_flight_limit, stats.window
        state.shortest_s, state.mean_s = stats.shortest_ns / 1e9, stats.mean_ns / 1e9
        state.results = worker.chunks_done + worker.exponent_rounds
        state.last, state.marks = worker.last, worker.ecn_marked
        state.timeouts = worker.timeouts
        return state

    @staticmethod
    def _known(told: pb2.Congestion) -> Congestion | None:
        try:
            return Congestion.from_table({**told.options, "algorithm": told.algorithm})
        except CongestionError as error:
            _log.warning("the controller's windows are left: %s", error)
            return None
