"""What goes wrong with embeddings."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError


class InvalidBagsError(InvalidInputError):
    """Offsets, weights or vectors that do not fit the rows they are for."""


class NoSuchRowError(InvalidInputError, IndexError):
    """A row that the table has not; nothing was sent."""


class TableError(InvalidInputError):
    """Tables, or how they are to be spread, that make no sense."""


class TooLittleMemoryError(UnavailableError):
    """The rows of this host do not fit its memory."""


class HostLostError(UnavailableError):
    """A host of the group does not answer, or does not end a step that others have ended."""


class HostsDifferError(InaError):
    """Hosts do not agree about what must be the same on all of them."""


class StepDeadlineError(DeadlineError):
    """Other hosts have not ended their steps within the time that was given them."""


class TraceError(InvalidInputError):
    """A file of look-ups that is not as it should be, or too short for what is asked of it."""


class ServiceLostError(UnavailableError):
    """The service of this host is not there, or does not answer."""
