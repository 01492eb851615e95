"""Carries a rank's part in changes of its job's mapping: :mod:`ina.host.remapper`, with a task."""

from __future__ import annotations

import asyncio

from ina.errors import InaError
from ina.host.calls import Credentials
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    MembershipEndedError,
    TransportError,
)
from ina.host.remapping import Remapping
from ina.sim.client import SimClient
from ina.sim.process import Process

ANSWER_S = 5.0
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 2.0
LOOK_S = 0.001
"""Whether the results by the old mapping are there: a native rank is woken."""


class SimRemapper:
    """One rank's."""

    def __init__(self, remapping: Remapping, client: SimClient, credentials: Credentials) -> None:
        self._remapping = remapping
        self._client = client
        self._credentials = credentials
        self._news = asyncio.Event()
        self._is_over = False
        self._stopping = False

    def ask(self, *, is_over: bool = False) -> None:
        """Asks the controller how a change goes on. ``is_over``: it has said that it is over."""
        self._is_over = is_over
        self._news.set()

    def heard(self, remaps_to: int) -> None:
        """What a heartbeat's answer said: the mapping that the job changes to, 0: none."""
        if remaps_to or self._remapping.epoch:
            self.ask(is_over=not remaps_to)

    def stop(self) -> None:
        """Takes part in no more changes."""
        self._stopping = True
        self._news.set()

    async def run(self, process: Process) -> InaError | None:
        """Until it is stopped; returns why this rank cannot follow the others, if it cannot."""
        while True:
            await self._news.wait()
            self._news.clear()
            await process.running()
            if self._stopping:
                return None
            try:
                await self._go_on(process)
            except (InaError, ValueError) as error:
                return TransportError(str(error))
            except RuntimeError:  # its worker is gone
                return None

    async def _go_on(self, process: Process) -> None:
        loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
        while not self._stopping:
            began_s = loop.time()
            try:
                word = self._remapping.word(is_over=self._is_over)
                mapping = await self._client.remap(self._credentials, word, ANSWER_S)
            except MembershipEndedError:
                return  # a heartbeat's answer says the same
            except (ControllerUnavailableError, ControllerTimeoutError):
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
                continue
            except ControllerError:
                return
            await process.running()
            pause_s = FIRST_PAUSE_S
            if self._stopping:
                return
            if self._remapping.on_answer(mapping, loop.time() - began_s):
                continue
            while self._remapping.lacks_results and not self._news.is_set():
                if self._remapping.wait_done(0):
                    break
                await asyncio.sleep(LOOK_S)
                await process.running()
            else:
                return
