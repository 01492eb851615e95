"""The class that packets ask for in their IP headers: DSCP (RFC 2474), the six bits beside ECN."""

from __future__ import annotations

from ina.errors import InvalidInputError

MAX_DSCP = 63


def checked_dscp(name: str, value: int) -> int:
    """The value of what is called ``name``, if it is one; raises InvalidInputError."""
    if not 0 <= value <= MAX_DSCP:
        raise InvalidInputError(f"{name}={value}: want a DSCP, 0 to {MAX_DSCP}")
    return value
