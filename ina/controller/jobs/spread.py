"""A job's entries on all of its switches at once, each of which is written in its own turn.

So a switch that is slow, or cannot be reached, holds up the jobs that are summed there, and no
other: nobody has two turns at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ina.controller.job import Job
from ina.controller.switches.switch import Switch


async def install(job: Job, switches: Iterable[Switch]) -> None:
    """Puts the job on all of them; ends when each has answered.

    Raises the first's :class:`SwitchError` that refused; then some may have it, and it is to be
    removed from all.
    """

    async def at(switch: Switch) -> None:
        async with switch.turn:
            await switch.install(job)

    await _all(map(at, switches))


async def remove(job: Job, switches: Iterable[Switch], removed: Callable[[Switch], None]) -> None:
    """Takes the job off all of them; ends when each has answered. It may be tried again.

    ``removed`` hears of each that has nothing of it any more. Raises the first's
    :class:`SwitchError` that does not take the removal.
    """

    async def at(switch: Switch) -> None:
        async with switch.turn:
            await switch.remove(job)
            removed(switch)

    await _all(map(at, switches))


async def install_other(
    job: Job, switches: Iterable[Switch], is_wanted: Callable[[], bool]
) -> None:
    """As :func:`install`, the job's other mapping; ``is_wanted``: asked before each is written."""

    async def at(switch: Switch) -> None:
        async with switch.turn:
            if is_wanted():
                await switch.install_other(job)

    await _all(map(at, switches))


async def remove_other(
    job: Job,
    switches: Iterable[Switch],
    is_wanted: Callable[[], bool],
    removed: Callable[[Switch], None],
) -> None:
    """As :func:`remove`, what is of the job's other mapping alone."""

    async def at(switch: Switch) -> None:
        async with switch.turn:
            if is_wanted():
                await switch.remove_other(job)
                if is_wanted():
                    removed(switch)

    await _all(map(at, switches))


async def _all(work: Iterable[Awaitable[None]]) -> None:
    results = await asyncio.gather(*work, return_exceptions=True)
    for error in results:
        if isinstance(error, BaseException):
            raise error
