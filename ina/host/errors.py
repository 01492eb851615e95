"""Errors of the host side. Each message is one line: what and where."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError


class UnsupportedDtypeError(InvalidInputError):
    """The array's dtype is not one that the network sums."""


class UnsupportedOpError(InvalidInputError):
    """The reduction is neither "sum" nor "avg"."""


class InvalidArrayError(InvalidInputError):
    """The array's memory layout does not fit, or `out` does not match it."""


class WorldSizeError(InvalidInputError):
    """The number of workers, or the rank, is out of range."""


class InvalidTicketError(InvalidInputError):
    """The job's parameters are out of range."""


class OperationTimeoutError(DeadlineError):
    """A reduction did not finish in time; names job, rank and sequence number."""


class SessionClosedError(UnavailableError):
    """The session was closed, or belongs to another process."""


class TransportError(UnavailableError):
    """A socket towards the switch could not be opened."""


class ControllerError(InaError):
    """The controller refused a request, or cannot be reached."""


class ControllerTimeoutError(ControllerError, DeadlineError):
    """The controller did not answer, or workers were missing, until the deadline."""
