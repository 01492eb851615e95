"""The modes that jobs can have, by name: the one place where they are listed."""

from __future__ import annotations

from ina.modes.errors import UnknownModeError
from ina.modes.mode import Mode
from ina.modes.pool import Pool
from ina.modes.roce import Roce
from ina.modes.shared import Shared
from ina.modes.stream import Stream
from ina.modes.transparent import Transparent
from ina.tables.values import Entry

__all__ = [
    "Mode",
    "UnknownModeError",
    "every",
    "forget",
    "names",
    "of",
    "of_aggregators",
    "register",
    "shares_slots",
    "sums",
]

_BY_NAME: dict[str, Mode] = {}


def register(mode: Mode) -> None:
    """Adds one; jobs can ask for it from then on."""
    _BY_NAME[mode.name] = mode


def forget(name: str) -> None:
    """Takes one off the list again."""
    del _BY_NAME[name]


def names() -> tuple[str, ...]:
    """All; the first is that of jobs where nobody says another."""
    return tuple(_BY_NAME)


def every() -> tuple[Mode, ...]:
    """All, in that order."""
    return tuple(_BY_NAME.values())


def of(name: str) -> Mode:
    """Raises :class:`UnknownModeError`: there is no such mode."""
    mode = _BY_NAME.get(name)
    if mode is None:
        raise UnknownModeError(f"no mode {name!r}: use {' or '.join(names())}")
    return mode


def sums(mode: Mode, program: str, *, shares_slots: bool) -> bool:
    """Whether a switch can sum jobs of a mode.

    ``program``: the mode of the one that it runs. ``shares_slots``: it has some that jobs share.
    Raises :class:`UnknownModeError`: of a program.
    """
    if of(program).framing != mode.framing:
        return False
    return mode.runs_on(program=program, shares_slots=shares_slots)


def of_aggregators() -> Mode:
    """The one whose program the controller's aggregators run."""
    return next(mode for mode in every() if mode.needs_aggregator)


def shares_slots(admission: Entry) -> bool:
    """Whether it lets a job in at slots that are other jobs', too."""
    return any(admission.action in mode.shared_admissions for mode in every())


register(Pool())
register(Shared())
register(Stream())
register(Roce())
register(Transparent())
