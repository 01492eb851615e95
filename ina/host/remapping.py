"""What a worker does when its job changes to another mapping while it runs. No I/O, no threads.

Rank 0 says from which operation on the new mapping counts: one of which it has sent nothing, nor
will by the old mapping. So nobody gets a result of that one or a later one there, and the others
may hear of it at any time: what they have sent of them they take back (docs/resize.md). The old
mapping goes once the controller has heard from all ranks that they have its results.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from ina.congestion import Choice
from ina.errors import InaError
from ina.extension.host import WorkerConfig
from ina.host.calls import RemapWord, remapped
from ina.host.failure import who
from ina.host.manner import Manner
from ina.host.ticket import Ticket
from ina.host.windows import Windows
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

# Rank 0's news take about that many times as long to the others as its last question to the
# controller took: there, into its store, out to the others, and their own question.
_NEWS_ROUND_TRIPS = 3


class RemapTransport(Protocol):
    """What this needs of a :class:`~ina.extension.host.Transport`."""

    def begin_remap(self, config: WorkerConfig, max_in_flight: int, congestion: Choice) -> None: ...  # noqa: D102
    def reserve(self, news_ns: int) -> int: ...  # noqa: D102
    def cut_over(self, first: int, may_send: bool) -> None: ...  # noqa: D102
    def wait_cut(self, timeout_ns: int) -> bool: ...  # noqa: D102
    def end_remap(self) -> None: ...  # noqa: D102
    def cancel_remap(self) -> None: ...  # noqa: D102


class RemapSwitch(Protocol):
    """What this needs of a switch that the rank's process runs for its job."""

    def add_mapping(self, entities: Sequence[bytes], job: int) -> None: ...  # noqa: D102
    def end_change(self, *, is_new_used: bool) -> None: ...  # noqa: D102


class Remapping:
    """One worker's. Not thread-safe."""

    def __init__(
        self,
        ticket: Ticket,
        manner: Manner,
        transport: RemapTransport,
        on_change: Callable[[Ticket], None],
        node: RemapSwitch | None = None,
        aggregator: RemapSwitch | None = None,
    ) -> None:
        """`ticket`: the one that it joined with; `on_change` is told the one it works by then.

        `node`: this rank's part in its host's node. `aggregator`: of the job, if this rank runs it.
        """
        self._joined_with, self._manner = ticket, manner
        self._transport, self._node, self._aggregator = transport, node, aggregator
        self._on_change = on_change
        self._ticket = ticket  # of the newer mapping
        manner.windows.of(ticket.congestion)
        self._epoch = 0
        self._first = 0
        self._is_cut = False
        self._may_send = False
        self._has_waited = False  # for the word that it may send
        self._declined = ""  # why this worker cannot follow
        self._said_declined = False
        self._said_done = False

    @property
    def windows(self) -> Windows:
        """What each mapping's windows are."""
        return self._manner.windows

    @property
    def epoch(self) -> int:
        """Of the mapping that the job changes to, as far as this worker knows; 0: none."""
        return self._epoch

    def word(self, *, is_over: bool = False) -> RemapWord:
        """What to say to the controller now; `is_over`: it may have no more to hear of this change.

        Raises RuntimeError: the session has ended.
        """
        done = self._is_cut and self._transport.wait_cut(0)
        # Who may not send yet asks on: the answer that lets it may have been lost.
        if done and self._may_send and (is_over or self._has_waited):
            return RemapWord()
        own_first = self._first if self._joined_with.rank == 0 else 0
        self._said_done, self._said_declined = done, bool(self._declined)
        return RemapWord(self._epoch, own_first, done, self._declined)

    @property
    def lacks_results(self) -> bool:
        """Whether the controller has not heard yet that this rank has the old mapping's results."""
        return self._is_cut and not self._said_done

    def on_answer(self, mapping: pb2.Mapping | None, took_s: float) -> bool:
        """Go on by what the controller has answered; `took_s`: its answer took so long.

        Returns whether there is more to say to it at once. Raises RuntimeError: the session has
        ended; InaError, ValueError: this worker cannot follow, or nobody could.
        """
        if self._epoch and (mapping is None or mapping.epoch != self._epoch):
            self._end()
        if mapping is None:
            return False
        if self._epoch == 0:
            self._begin(mapping)
        if mapping.first_operation:
            if self._declined:
                raise InaError(f"{self._who()}: {self._declined}")
            # Where all have waited for the word that they may send, the controller waits to know
            # that each has heard it.
            return self._cut(mapping.first_operation, may_send=not mapping.waits)
        if self._declined:
            return not self._said_declined
        if self._joined_with.rank != 0 or self._first:
            return False
        self._first = self._transport.reserve(round(_NEWS_ROUND_TRIPS * took_s * 1e9))
        return True

    def _begin(self, mapping: pb2.Mapping) -> None:
        self._epoch = mapping.epoch
        try:
            self._ticket = remapped(self._joined_with, mapping)
            if mapping.node_entities and self._node is not None:
                self._node.add_mapping(mapping.node_entities, self._ticket.job)
            if self._aggregator is not None:
                self._aggregator.add_mapping(mapping.aggregator_entities, self._ticket.job)
            with self.windows.lock:
                self._transport.begin_remap(
                    *(self._manner.config(self._ticket), mapping.window),
                    self._manner.choice(self._ticket),
                )
        except (InaError, ValueError, RuntimeError) as error:
            self._declined = f"rank {self._joined_with.rank} cannot follow: {error}"
            _log.warning("%s: its mapping stays as it is: %s", self._who(), self._declined)

    def _cut(self, first: int, *, may_send: bool) -> bool:
        """Returns whether it has waited to send, and may now."""
        if self._is_cut and self._may_send:
            return False
        self._has_waited = self._is_cut
        if not self._is_cut:
            _log.info(
                "%s: from all-reduce %d on it has %d slots, epoch %d",
                *(self._who(), first, self._ticket.slots, self._epoch),
            )
        self._transport.cut_over(first, may_send)
        self._is_cut, self._may_send, self._first = True, may_send, first
        self._on_change(self._ticket)
        return self._has_waited and may_send

    def _end(self) -> None:
        """The change is over, or called off."""
        if self._is_cut:
            self._transport.end_remap()
        elif not self._declined:
            self._transport.cancel_remap()
        if self._node is not None:
            self._node.end_change(is_new_used=self._is_cut)
        if self._aggregator is not None:
            self._aggregator.end_change(is_new_used=self._is_cut)
        self._epoch = self._first = 0
        self._is_cut = self._may_send = self._has_waited = False
        self._said_declined = self._said_done = False
        self._declined = ""

    def _who(self) -> str:
        return who(self._joined_with)
