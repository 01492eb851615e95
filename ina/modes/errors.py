"""Errors of asking for modes."""

from __future__ import annotations

from ina.errors import InvalidInputError


class UnknownModeError(InvalidInputError):
    """There is no mode of this name."""
