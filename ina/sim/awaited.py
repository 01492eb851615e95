"""An asyncio future as an operation of ina.host's turns, and what those end with as a future."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ina.host.arrays import Array
from ina.host.turns import Sum

Found = asyncio.Future["Array | None"]


class Awaited:
    """A :class:`ina.host.turns.Sum`, in a loop whose one thread never blocks."""

    def __init__(self, future: Found) -> None:
        self.future = future

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        """See Sum. Called by the loop, soon."""
        self.future.add_done_callback(lambda _: function(self))

    def done(self) -> bool:
        """See Sum."""
        return self.future.done()

    def wait(self) -> Array | None:
        """See Sum; of what has ended."""
        return self.future.result()


def as_future(sum_: Sum[Any], loop: asyncio.AbstractEventLoop) -> Found:
    """What it ends with."""
    if isinstance(sum_, Awaited):
        return sum_.future
    future: Found = loop.create_future()

    def follow(ended: Sum[Any]) -> None:
        try:
            result = ended.wait()
        except Exception as error:
            fail(future, error)
        else:
            if not future.done():
                future.set_result(result)

    sum_.add_done_callback(follow)
    return future


def fail(future: Found, error: Exception) -> None:
    """Unless it has ended."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # seen: nobody need wait for it
