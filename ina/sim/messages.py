"""How control messages travel: a way between two programs, with a delay and losses of its own.

Messages of one connection arrive in the order in which they were sent, as those of TCP do. One that
is lost does not come later, either: it stands for a connection that hangs for longer than anybody
waits. That a connection has ended is always heard in the end.
"""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass

from ina.sim.errors import ScenarioError
from ina.sim.loop import VirtualLoop

_APART_S = 1e-9


class ControlLog:
    """What became of each control message, a line each, in order: two runs of a seed are the same.

    ``lines``: ``when_ns path direction what: fate``.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self.lines: list[str] = []
        self.loop = loop
        """In which all of it happens."""

    def write(self, what: str) -> None:
        """A line, as of now."""
        self.lines.append(f"{self.loop.now_ns} {what}")


@dataclass(frozen=True)
class Travel:
    """How messages of one path travel."""

    least_s: float = 50e-6
    most_s: float = 200e-6
    """Delays are evenly distributed between these."""
    loss: float = 0.0
    """How likely a message is lost."""

    def __post_init__(self) -> None:
        if not 0 <= self.least_s <= self.most_s:
            raise ScenarioError(f"messages take {self.least_s:g} to {self.most_s:g} s: no range")
        if not 0 <= self.loss < 1:
            raise ScenarioError(f"loss of messages = {self.loss:g}: want 0 to less than 1")


USUAL = Travel()


class Path:
    """Between two programs. ``travel`` may be changed at any time."""

    def __init__(self, name: str, seed: int, log: ControlLog, travel: Travel = USUAL) -> None:
        """What happens by chance follows from ``seed`` and ``name``."""
        self.name = name
        self.travel = travel
        self.log = log
        self.random = random.Random(f"{seed} {name}")
        self._is_cut = False
        self._held: list[Callable[[], None]] = []

    @property
    def is_cut(self) -> bool:
        """Whether no message passes."""
        return self._is_cut

    def cut(self) -> None:
        """From now on no message arrives, those under way included."""
        self._is_cut = True

    def mend(self) -> None:
        """From now on messages pass again; that connections have ended is heard now."""
        self._is_cut = False
        held, self._held = self._held, []
        for send in held:
            send()

    def delay_s(self) -> float:
        """Of one message, drawn."""
        return self.random.uniform(self.travel.least_s, self.travel.most_s)

    def is_lost(self) -> bool:
        """Of one message, drawn."""
        return self.travel.loss > 0 and self.random.random() < self.travel.loss

    def hold(self, send: Callable[[], None]) -> None:
        """Sends it once the path is mended."""
        self._held.append(send)


class Wire:
    """One direction of one connection over a path."""

    def __init__(self, path: Path, direction: str) -> None:
        self._path = path
        self._direction = direction
        self._last_s = 0.0

    def send(
        self, what: str, arrive: Callable[[], None], *, lost: Callable[[], None] | None = None
    ) -> None:
        """Calls ``arrive`` when the message is there; ``lost`` instead if it will never be.

        ``what``: for the log.
        """
        path = self._path
        delay_s, is_lost = path.delay_s(), path.is_lost()  # drawn either way

        def land() -> None:
            if is_lost or path.is_cut:
                self._note(what, "cut" if path.is_cut else "lost")
                if lost is not None:
                    lost()
            else:
                self._note(what, "arrives")
                arrive()

        self._at(delay_s, land)

    def end(self, what: str, arrive: Callable[[], None]) -> None:
        """Calls ``arrive`` when it is heard that the connection has ended, after what was sent."""
        path = self._path

        def land() -> None:
            if path.is_cut:
                path.hold(lambda: self.end(what, arrive))
            else:
                self._note(what, "ends")
                arrive()

        self._at(path.delay_s(), land)

    def _at(self, delay_s: float, function: Callable[[], None]) -> None:
        loop = self._path.log.loop
        # Later than the one before: asyncio's timers of one moment are in no order.
        self._last_s = max(self._last_s + _APART_S, loop.time() + delay_s)
        # In no process: it arrives also when its sender has died.
        loop.call_at(self._last_s, function, context=contextvars.Context())

    def _note(self, what: str, fate: str) -> None:
        self._path.log.write(f"{self._path.name} {self._direction} {what}: {fate}")
