"""Carries a worker's part in changes of its job's mapping to the controller and back.

It begins with the first change. Training does not wait for it.
"""

from __future__ import annotations

import logging

from ina.errors import InaError
from ina.extension.host import TransportEngine
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    MembershipEndedError,
    TransportError,
)
from ina.host.member.state import MemberState
from ina.host.remapping import Remapping

_log = logging.getLogger(__name__)

REMAP = "remap"
"""The procedure's name."""
_ANSWER_S = 5.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 2.0
_LOOK_S = 0.1  # whether it is to stop, or there is news, while it waits for results
_JOIN_S = 5.0


class Remapper:
    """One worker's. stop() it before it leaves the job."""

    def __init__(
        self, state: MemberState, remapping: Remapping, transport: TransportEngine
    ) -> None:
        self._state, self._remapping, self._transport = state, remapping, transport
        self._driver = state.driver
        self._news = state.driver.flag()  # there may be something to ask for
        self._is_over = False  # as far as the controller has said
        self._has_begun = False

    def ask(self, *, is_over: bool = False) -> None:
        """Ask the controller how a change goes on. `is_over`: it has said that it is over."""
        if self._state.stopping.is_set():
            return
        self._is_over = is_over
        self._news.set()
        if not self._has_begun:
            self._has_begun = True
            self._driver.start(REMAP, self._run)

    def heard(self, remaps_to: int) -> None:
        """What a heartbeat's answer said: the mapping that the job changes to, 0: none."""
        if remaps_to or self._remapping.epoch:
            self.ask(is_over=not remaps_to)

    async def stop(self) -> None:
        """Take part in no more changes; the membership is stopping. Idempotent."""
        self._news.set()
        await self._driver.ended(REMAP, _JOIN_S)

    async def _run(self) -> None:
        while True:
            await self._driver.until_set(self._news)
            self._news.clear()
            if self._state.stopping.is_set():
                return
            try:
                await self._go_on()
            except (InaError, ValueError) as error:
                return await self._state.end(TransportError(str(error)))
            except RuntimeError as error:  # the session has ended, or is frozen
                _log.debug("%s: %s", self._state.who, error)

    async def _go_on(self) -> None:
        state, pause_s = self._state, _FIRST_PAUSE_S
        while not state.stopping.is_set():
            began_s = self._driver.now_s()
            try:
                word = self._remapping.word(is_over=self._is_over)
                mapping = await state.client.remap(state.grant.credentials, word, _ANSWER_S)
            except MembershipEndedError:
                return  # a heartbeat's answer says the same
            except (ControllerUnavailableError, ControllerTimeoutError) as error:
                _log.debug("%s", error)
                await self._driver.wait(state.stopping, pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
                continue
            except ControllerError as error:
                _log.warning("%s", error)
                return
            pause_s = _FIRST_PAUSE_S
            if self._remapping.on_answer(mapping, self._driver.now_s() - began_s):
                continue
            if not await self._has_done_more():
                return

    async def _has_done_more(self) -> bool:
        """Wait for the results by the old mapping; False: there are none, or news comes first."""
        while self._remapping.lacks_results and not self._news.is_set():
            if await self._driver.until_cut(self._transport, _LOOK_S):
                return True
        return False
