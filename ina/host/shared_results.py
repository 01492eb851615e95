"""Whether results that the switch sends to several workers at once reach this worker.

IP multicast may be blocked from the start, and it may stop: an Ethernet switch forgets who listens
when nobody on the network asks (IGMP snooping without a querier). Then every packet is sent again
after its timeout, and the answer comes to the worker alone: right, but slow. So somebody must look.
"""

from __future__ import annotations

import contextlib
import logging

from ina.extension.host import Transport
from ina.host.link import SwitchLink

_log = logging.getLogger(__name__)

LOOK_S = 0.25
"""How often to look."""
_ENOUGH = 16
"""Results in a row that came to this worker alone; a few are losses repaired."""
_LOOKS = 3
"""Looks in a row that found such results and no other. Once a whole burst may be lost and repaired;
and who gets results of its own by mistake halves its link's rate where the network floods groups:
it bears both."""


class SharedResults:
    """Looks after one transport; stops listening when nothing comes that way."""

    def __init__(self, who: str, link: SwitchLink, transport: Transport) -> None:
        self._who = who
        self._link = link
        self._transport = transport
        self._shared_packets = 0
        self._results = 0  # when a shared packet was seen last
        self._seen = 0  # results, by the last look
        self._alone = 0  # looks in a row
        self.missing = False
        """Nothing comes that way; the controller is to be told."""

    @property
    def is_watched(self) -> bool:
        """Whether look() is needed."""
        return self._link.is_listening

    def look(self) -> bool:
        """Look once; return whether they have been found missing just now."""
        if not self._link.is_listening:
            return False
        stats = self._transport.stats()
        results = stats.worker.chunks_done + stats.worker.exponent_rounds
        came, self._seen = results > self._seen, results
        if stats.channel.shared_packets > self._shared_packets:
            self._shared_packets, self._results = stats.channel.shared_packets, results
            self._alone = 0
        elif came:
            self._alone += 1
        if results - self._results < _ENOUGH or self._alone < _LOOKS:
            return False
        with contextlib.suppress(OSError):  # no filter: what still comes is a copy, and no more
            self._transport.take_own_results()
        self._link.stop_listening()
        _log.warning(
            "%s: results that the switch sends to several workers at once (IP multicast) do not"
            " come: %d came only when asked for again; the controller is asked for results of"
            " its own",
            *(self._who, results - self._results),
        )
        self.missing = True
        return True
