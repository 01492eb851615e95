"""What the controller refuses, and why. Each message is one line."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError


class ConfigError(InvalidInputError):
    """The configuration file is wrong; the message names the file and the key."""


class JobRequestError(InvalidInputError):
    """A request's own fields are wrong: world size, rank, address, name."""


class JobConflictError(InaError):
    """The request contradicts what other workers of the job have said, or its present state."""


class UnknownJobError(InaError):
    """No job has this name."""


class NoRoomError(UnavailableError):
    """The switch has no slots, or no job numbers, left for this job."""


class JoinTimeoutError(DeadlineError):
    """The other workers did not join in time; the message names their ranks."""


class JobAbortedError(InaError):
    """The job ended before it ran: a worker went away, or the switch refused an entry."""


class SwitchError(UnavailableError):
    """The switch does not answer, or refused what the controller wrote."""


class ListenError(UnavailableError):
    """The controller's own address is in use, or is not this machine's."""
