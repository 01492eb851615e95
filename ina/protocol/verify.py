"""How the workers of a job verify the sums that they get: see docs/protocol.md, "Verified sums"."""

from __future__ import annotations

from typing import Literal, get_args

from ina.errors import InvalidInputError

Verify = Literal["off", "accidents", "keyed"]
"""``accidents``: bits that flip are found; ``keyed``: what somebody forges is found, too."""

VERIFY_MODES: tuple[Verify, ...] = get_args(Verify)
DEFAULT_VERIFY: Verify = "off"
"""Of a job whose workers ask for nothing."""

CHECK_KEY_BYTES = 16


def checked_verify(name: str, value: str) -> Verify:
    """The value of what is called ``name``, if it is one; raises InvalidInputError."""
    if value not in VERIFY_MODES:
        # It may have come from anywhere: a line for people stays one.
        shown = value if value.isprintable() and len(value) < 40 else repr(value[:40])
        raise InvalidInputError(f"{name}={shown}: want {' or '.join(VERIFY_MODES)}")
    return value
