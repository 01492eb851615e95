"""What goes wrong with inference."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError


class PlanError(InvalidInputError):
    """A plan that makes no sense; the message says which stage, and what was expected."""


class PlacesError(InvalidInputError):
    """A file of places that cannot be read, or is of another plan."""


class RequestError(InvalidInputError):
    """What is asked is not what the plan takes; nothing was computed."""


class PlansDifferError(InaError):
    """Who is asked has another plan than who asks."""


class NodeLostError(UnavailableError):
    """A node of the plan is not heard any more; the message names it."""


class SumsLostError(UnavailableError):
    """The sums of a stage do not come any more; the message names it, and says more if it can."""


class RequestDeadlineError(DeadlineError):
    """A request was not answered in time; the message says who was not heard."""


class ServiceError(UnavailableError):
    """A node's service cannot start, or did not get ready."""
