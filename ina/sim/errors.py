"""What the virtual network refuses."""

from __future__ import annotations

from ina.errors import InvalidInputError


class ScenarioError(InvalidInputError):
    """A scenario that cannot be run; the message says what of it, and why."""
