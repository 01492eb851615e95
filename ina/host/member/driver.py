"""What the rules of a membership ask of the world around them.

Between two awaits of one session's rules none of its other rules runs, whatever drives them: so
they need no locks.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from ina.extension.host import TransportEngine

T = TypeVar("T")

Procedure = Callable[[], Coroutine[Any, Any, None]]
"""Rules that run beside others of the same session."""


class Flag(Protocol):
    """Something that has happened. Any thread may set it."""

    def set(self) -> None: ...  # noqa: D102
    def clear(self) -> None: ...  # noqa: D102
    def is_set(self) -> bool: ...  # noqa: D102


class Waiting(Protocol):
    """Says to people, now and then, that somebody is waited for."""

    whom: str

    def heard(self) -> None:
        """It has answered: nothing more is said of it."""

    def missed(self, why: str) -> None:
        """It has not."""


class Driver(Protocol):
    """One session's."""

    def now_s(self) -> float:
        """A clock that never goes back."""

    def flag(self) -> Flag:
        """A new one, not set."""

    def start(self, name: str, procedure: Procedure) -> None:
        """Run it beside what runs already. ``name``: one of few, for people."""

    async def ended(self, name: str, timeout_s: float) -> None:
        """Until the procedure has ended; where it does not in that time, a warning says so."""

    async def wait(self, flag: Flag, timeout_s: float) -> bool:
        """Until the flag is set; False: the time is over."""

    async def until_set(self, flag: Flag) -> None:
        """However long it takes."""

    async def sleep(self, for_s: float) -> None:
        """Do nothing."""

    async def until_cut(self, transport: TransportEngine, timeout_s: float) -> bool:
        """Until it has the older mapping's results; False: the time is over.

        Raises RuntimeError: the session has ended.
        """

    async def outside(self, function: Callable[[], T]) -> T:
        """Call what may take long, or may itself turn to the session; other rules run meanwhile."""

    def patience(self, whom: str, timeout_s: float) -> AbstractContextManager[Waiting]:
        """While it lasts, people are told who is waited for, for ``timeout_s`` in all."""
