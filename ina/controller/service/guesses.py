"""Slows down who guesses join tokens: the next call waits before its token is looked at.

Counted for each address and each tenant whose jobs are guessed at, so nobody waits for what was
done from elsewhere, or to others. A call waits by itself and behind no other, whether its token is
right or wrong, and at most :data:`MOST_PAUSE_S`: less than any worker waits for an answer. So who
has the right token gets in, whatever comes from the same address.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_log = logging.getLogger(__name__)

FREE = 3
"""Wrong tokens that cost nothing: somebody mistyped."""
FIRST_PAUSE_S, MOST_PAUSE_S = 0.25, 2.0
"""After each further one the pause is twice as long. Workers with several controllers wait 3 s for
one."""
FORGIVES_S = 10.0
"""In so long one wrong token is forgotten."""
_MOST_COUNTED = 16
"""As wrong tokens of one key: in some minutes all are forgotten."""
_KEYS = 10_000
"""That are kept; of more, those that were silent for longest are forgotten."""


@dataclass
class _Count:
    wrong: float
    at_s: float


class Guesses:
    """Of all addresses."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._counts: OrderedDict[tuple[str, str], _Count] = OrderedDict()

    def pause_s(self, address: str, tenant: str) -> float:
        """How long a call from there about a job of ``tenant`` waits now."""
        doublings = int(self._wrong(address, tenant)) - FREE
        return min(FIRST_PAUSE_S * 2.0**doublings, MOST_PAUSE_S) if doublings >= 0 else 0.0

    async def wait(self, address: str, tenant: str) -> None:
        """Before a token is looked at."""
        pause_s = self.pause_s(address, tenant)
        if pause_s:
            await self._sleep(pause_s)

    def missed(self, address: str, tenant: str) -> None:
        """A token was wrong."""
        before = self._wrong(address, tenant)
        wrong = min(before + 1, _MOST_COUNTED)
        self._counts[address, tenant] = _Count(wrong, self._clock())
        self._counts.move_to_end((address, tenant))
        if len(self._counts) > _KEYS:
            self._counts.popitem(last=False)
        if before < FREE <= wrong:
            _log.warning(
                "%s shows wrong join tokens for jobs of tenant %r: it is answered more slowly,"
                " by up to %g s",
                *(address, tenant, MOST_PAUSE_S),
            )

    def _wrong(self, address: str, tenant: str) -> float:
        found = self._counts.get((address, tenant))
        if found is None:
            return 0.0
        return max(0.0, found.wrong - (self._clock() - found.at_s) / FORGIVES_S)
