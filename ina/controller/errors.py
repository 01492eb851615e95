"""What the controller refuses, and why. Each message is one line."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError
from ina.trees.errors import JobRequestError


class ConfigError(InvalidInputError):
    """The configuration file is wrong; the message names the file and the key."""


class JobPipesError(JobRequestError):
    """A job's workers are behind ports of different pipes, whose registers are their own."""


class JobConflictError(InaError):
    """The request contradicts what other workers of the job have said, or its present state."""


class FormerJobError(InaError):
    """The name will be free when a former job has ended: ask again."""


class UnknownJobError(InaError):
    """No job has this name."""


class UnknownSwitchError(JobRequestError):
    """No switch of the controller has this name, or none was named and there are several."""


class NoRoomError(UnavailableError):
    """The switch has no slots, or no job numbers, left for this job."""


class QuotaError(NoRoomError):
    """A tenant's quota is in use; there may be room for others."""


class SlotQuotaError(QuotaError):
    """Its quota of slots, which it has again when its other jobs shrink."""


class QueuedError(UnavailableError):
    """The job waits for slots: ask again, its place in the queue is kept for a while."""


class JoinTimeoutError(DeadlineError):
    """The other workers did not join in time; the message names their ranks."""


class JobAbortedError(InaError):
    """The job ended before it ran: a worker went away, or the switch refused an entry."""


class ListenError(UnavailableError):
    """The controller's own address is in use, or is not this machine's."""


class SlowWatcherError(InaError):
    """A watcher did not read its events in time and was dropped; it may watch again."""


class MemberKeyError(InaError):
    """A call for a rank does not carry the key that its Join was answered with."""


class JobTokenError(InaError):
    """A call does not carry the join token that the job was created with."""


class TenantError(InaError):
    """The tenant is not configured, or its quota does not hold the job."""


class StoreError(UnavailableError):
    """The file of the desired state cannot be read or written."""


class FencedError(StoreError):
    """Another controller has claimed the store: this one may not change it any more."""


class OtherSwitchError(StoreError):
    """A controller of another switch has claimed the store: each switch needs one of its own."""


class StandbyError(UnavailableError):
    """This controller is not the primary; another one is, or nobody is yet."""


class RoutingError(InaError):
    """A job cannot be routed, or a policy cannot be had; the message says why, in one line."""
