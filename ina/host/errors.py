"""Errors of the host side. Each message is one line: what and where."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError


class UnsupportedDtypeError(InvalidInputError):
    """The array's dtype is not one that the network sums."""


class UnsupportedOpError(InvalidInputError):
    """The reduction is neither "sum" nor "avg"."""


class HeadroomError(InvalidInputError):
    """The values travel in too few bits for the sum of so many workers."""


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
    """A way to the switch, a socket or shared memory, could not be opened."""


class NoSwitchHereError(TransportError):
    """No switch of this host is at the shared-memory address."""


class ControllerError(InaError):
    """The controller refused a request, or cannot be reached."""


class ControllerTimeoutError(ControllerError, DeadlineError):
    """The controller did not answer, or workers were missing, until the deadline."""


class ControllerUnavailableError(ControllerError, UnavailableError):
    """No controller answers at the moment, or only a standby; a later try may succeed."""


class MembershipEndedError(ControllerError):
    """The controller does not know this incarnation of the job, or its member, any more."""


class JobFailedError(UnavailableError):
    """The job cannot go on: every pending and later operation of the session ends with this.

    `ranks`: whom it concerns, where that is known.
    """

    def __init__(self, message: str, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.ranks = ranks


class WorkerLostError(JobFailedError):
    """A worker of the job has died; `ranks` names it."""


class JobEvictedError(JobFailedError):
    """An operator, or a more important job, has ended this one."""


class SwitchLostError(JobFailedError):
    """The switch does not answer any more, or has lost its registers."""


class JobEndedError(JobFailedError):
    """The controller has ended this incarnation of the job."""


class RanksDifferError(JobEndedError):
    """The ranks do not reduce the same things in the same order; says how they differ."""


class CorruptedSumError(JobFailedError):
    """Results were, again and again, not the sums of what the workers had sent; none was used."""


class SessionFrozenError(UnavailableError):
    """The session was frozen to go on without the switch; nothing more can be submitted."""


class RecoveryError(InaError):
    """What the ranks report after a freeze does not fit together; no sum can be promised."""
