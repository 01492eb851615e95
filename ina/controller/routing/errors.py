"""What routing refuses."""

from __future__ import annotations

from ina.errors import InaError


class RoutingError(InaError):
    """A job cannot be routed, or a policy cannot be had; the message says why, in one line."""
