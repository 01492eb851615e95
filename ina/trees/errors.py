"""What no tree can be made for. Each message is one line."""

from __future__ import annotations

from ina.errors import InvalidInputError


class JobRequestError(InvalidInputError):
    """What is asked for a job cannot be: its size, its ranks, its addresses, its trees."""
