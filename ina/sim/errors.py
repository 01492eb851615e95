"""What the virtual network refuses."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError


class ScenarioError(InvalidInputError):
    """A scenario that cannot be run; the message says what of it, and why."""


class CrashedError(InaError):
    """The rank was killed, or the controller was while it started."""


class NothingHappensError(InaError):
    """Somebody waits, and nothing will ever happen any more: no packet, no timer, no message."""


class VirtualTimeError(DeadlineError):
    """The run's limit of virtual time has passed; the message says who still waits, and where."""
