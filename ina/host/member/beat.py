"""Heartbeats: a worker says how it gets on, and hears what its controller wants to know."""

from __future__ import annotations

import logging
from typing import Protocol

from ina.extension.host import TransportEngine
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    JobEndedError,
    MembershipEndedError,
)
from ina.host.member.remap import Remapper
from ina.host.member.silence import Silence
from ina.host.member.state import MemberState
from ina.host.progress import ProgressReporter
from ina.host.shared_results import LOOK_S
from ina.host.windows import Windows
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

# After NOT_FOUND: for the stream to bring the reason, which says more.
_REASON_GRACE_S = 1.0
# While the controller is away. Soon, whatever the lease: it may come back with a shorter one.
_MAX_PAUSE_S = 2.0
# A heartbeat's answer, at most: by then another controller may be worth a try.
_ANSWER_S = 5.0


class Shared(Protocol):
    """What looks whether results that the switch sends to several workers at once come."""

    missing: bool
    """They do not; the controller is to be told."""

    @property
    def is_watched(self) -> bool:
        """Whether look() is needed."""

    def look(self) -> bool:
        """Look once; return whether they have been found missing just now."""


class Heart:
    """One worker's."""

    def __init__(
        self, state: MemberState, transport: TransportEngine, windows: Windows, remapper: Remapper,
        silence: Silence, shared: Shared,
    ) -> None:  # fmt: skip
        self._state, self._transport, self._windows = state, transport, windows
        self._remapper, self._silence, self._shared = remapper, silence, shared
        self._reporter = ProgressReporter(
            transport, state.driver.now_s, wishes=state.grant.options.wishes
        )

    async def run(self) -> None:
        """Until the membership ends."""
        state, silence = self._state, self._silence
        while not state.stopping.is_set():
            progress = await self._progress()
            timeout_s = max(min(silence.lease_s / 2, _ANSWER_S), silence.heartbeat_s)
            silence.progressed(progress)
            try:
                reply = await state.client.heartbeat(state.grant.credentials, progress, timeout_s)
            except MembershipEndedError as error:
                state.look.set()
                await state.driver.wait(state.stopping, _REASON_GRACE_S)
                return await state.end(JobEndedError(f"{state.who}: {error}"))
            except (ControllerUnavailableError, ControllerTimeoutError) as error:
                await silence.missed(error)
            except ControllerError as error:
                if not state.stopping.is_set():
                    _log.warning("%s", error)
            else:
                self._on_answer(reply)
            if (lost := silence.lost_switch(progress)) is not None:
                await state.end(lost)
            soon_s = min(silence.heartbeat_s, _MAX_PAUSE_S)
            await self._pause(soon_s if silence.is_away else silence.heartbeat_s)

    async def _progress(self) -> pb2.Progress:
        grant, outside = self._state.grant, self._state.driver.outside
        progress = self._reporter.report()
        progress.windows.CopyFrom(self._windows.state(self._transport.stats()))
        progress.shared_results_missing = self._shared.missing
        node, aggregator = grant.options.node, grant.aggregator
        if node is not None and (counts := await outside(node.counts)) is not None:
            progress.node.CopyFrom(counts)
        if aggregator is not None and (made := await outside(aggregator.counts)) is not None:
            progress.aggregator.CopyFrom(made)
        return progress

    async def _pause(self, wait_s: float) -> None:
        """Wait for the next heartbeat; less when there is something to tell."""
        state = self._state
        end_s = state.driver.now_s() + wait_s
        while (left_s := end_s - state.driver.now_s()) > 0:
            looks = self._shared.is_watched or state.others_leave
            if await state.driver.wait(state.hurry, min(left_s, LOOK_S) if looks else left_s):
                break
            if self._shared.look():
                break
            # What the others never will begin cannot end: the controller is to know soon.
            if state.others_leave and self._reporter.has_begun_more:
                break
        state.hurry.clear()

    def _on_answer(self, reply: pb2.HeartbeatReply) -> None:
        if reply.ranks_here == 1:  # one may have left before the stream was open
            self._state.others.all_left()
        self._remapper.heard(reply.remaps_to)
        self._silence.answered(reply)
