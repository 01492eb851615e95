"""The client's blocking calls, made in one thread, each with a deadline.

The client is not safe to use from several threads, and none of its calls has a deadline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ina.tables.bfrt.refusals import Refusals
from ina.tables.errors import SwitchError

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

CALL_TIMEOUT_S = 20.0
"""Longer than a full table takes to read."""


class Caller:
    """Runs functions one after the other. After a late one nothing runs any more."""

    def __init__(self, refusals: Refusals, hang_up: Callable[[], None]) -> None:
        """``hang_up`` is called, in the event loop, when a call is late: it must end that call."""
        self._refusals = refusals
        self._hang_up = hang_up
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ina-bfrt")
        self._late = ""

    async def call(
        self, doing: str, function: Callable[[], _T], timeout_s: float | None = None
    ) -> _T:
        """The result of ``function``; ``timeout_s``: instead of :data:`CALL_TIMEOUT_S`.

        Raises :class:`SwitchError`: what the client raised, or that it took too long.
        """
        if self._late:
            raise self._refusals.error(self._late)
        timeout_s = CALL_TIMEOUT_S if timeout_s is None else timeout_s
        try:
            pending = self._thread.submit(function)
        except RuntimeError:  # it is shut down
            raise self._refusals.error("the session is closed") from None
        try:
            return await asyncio.wait_for(asyncio.wrap_future(pending), timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            self._late = f"{doing}: no answer within {timeout_s:g} s"
            self._hang_up()
            raise self._refusals.error(self._late) from None
        except SwitchError:
            raise
        except self._refusals.known as error:
            raise self._refusals.translate(error, doing) from None

    def close(self) -> None:
        """Lets the thread end when it has done what it does."""
        self._thread.shutdown(wait=False, cancel_futures=True)
