"""The stream of what happens to a worker's job, and what each event means."""

from __future__ import annotations

import logging

from ina.host.calls import end_of
from ina.host.errors import ControllerError, MembershipEndedError
from ina.host.member.remap import Remapper
from ina.host.member.silence import Silence
from ina.host.member.state import MemberState
from ina.host.windows import Windows, WindowsTransport
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 2.0
_REMAPS = (pb2.JOB_REMAPS, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF)


class Watch:
    """One worker's."""

    def __init__(
        self, state: MemberState, transport: WindowsTransport, windows: Windows,
        remapper: Remapper, silence: Silence,
    ) -> None:  # fmt: skip
        self._state, self._transport, self._windows = state, transport, windows
        self._remapper, self._silence = remapper, silence

    async def run(self) -> None:
        """Until the job or the membership ends."""
        state = self._state
        pause_s, is_again = _FIRST_PAUSE_S, False
        while not state.stopping.is_set():
            stream = state.stream = state.client.watch(state.grant.credentials)
            try:
                state.stream_is_open = await stream.begins()
                if state.stream_is_open:  # that a stall is over may have been said meanwhile
                    state.latch.hint("stall", None)
                    if is_again:  # and that the mapping changes, which a heartbeat's answer says
                        state.hurry.set()
                while (event := await stream.next()) is not None:
                    pause_s = _FIRST_PAUSE_S
                    if await self._on_event(event):
                        return
            except MembershipEndedError:
                state.hurry.set()  # the heartbeat's answer decides
                return
            except ControllerError as error:
                _log.debug("%s", error)
            finally:
                state.stream_is_open = False
            # Without its stream the controller takes this worker for dead if no heartbeat comes.
            state.hurry.set()
            is_again = True
            await state.driver.wait(state.look, pause_s)
            state.look.clear()
            heartbeat_s = max(self._silence.heartbeat_s, _FIRST_PAUSE_S)
            pause_s = min(2 * pause_s, heartbeat_s, _MAX_PAUSE_S)

    async def _on_event(self, event: pb2.JobEvent) -> bool:
        """Return whether it was the last."""
        state, latch = self._state, self._state.latch
        if event.epoch not in (0, state.grant.ticket.epoch):
            return False
        end = end_of(event, state.who)
        if end is not None:
            await state.end(end)
            return True
        if event.kind == pb2.JOB_STALLED:
            _log.warning("%s: %s", state.who, event.reason)
            latch.hint("stall", event.reason)
        elif event.kind == pb2.RANKS_DIFFER:
            state.hurry.set()  # each heartbeat says what was submitted
        elif event.kind == pb2.JOB_RESUMED:
            _log.warning("%s: goes on %s", state.who, event.reason)
            latch.hint("stall", None)
        elif event.kind == pb2.MEMBER_LEFT:
            state.others.left(event.ranks)
            state.others_leave = True
            state.hurry.set()
            for rank in event.ranks:
                latch.hint(f"rank {rank}", f"rank {rank} has left the job")
        elif event.kind == pb2.JOB_WINDOWS:
            self._windows.take(event.windows, self._transport)
        elif event.kind in _REMAPS:
            self._remapper.ask(is_over=event.kind == pb2.JOB_REMAPPED)
        elif event.kind == pb2.SWITCH_UNREACHABLE:
            _log.warning("%s: %s", state.who, event.reason)
            latch.hint("switch", event.reason)
        elif event.kind == pb2.SWITCH_BACK:
            _log.warning("%s: the controller reaches the switch again", state.who)
            latch.hint("switch", None)
        return False
