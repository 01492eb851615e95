"""How the workers of a job verify the sums that they get: see docs/protocol.md, "Verified sums"."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Literal, get_args

from ina.errors import InvalidInputError
from ina.protocol.addresses import is_shm_address

Verify = Literal["off", "accidents", "keyed"]
"""``accidents``: bits that flip are found; ``keyed``: what somebody forges is found, too."""

VERIFY_MODES: tuple[Verify, ...] = get_args(Verify)
CHECK_KEY_BYTES = 16


def usual_verify(workers: Iterable[IPv4Address | str]) -> Verify:
    """Of a job whose workers, at these addresses, ask for nothing.

    Where packets go by a network, links set the pace, and the check takes no time but a twelfth of
    the workers' processor time; it finds what cables, adapters and a switch's memory spoil. Among
    processes that share memory it takes as much of the time, against what spoils all else, too.
    """
    return "off" if all(map(is_shm_address, workers)) else "accidents"


def checked_verify(name: str, value: str) -> Verify:
    """The value of what is called ``name``, if it is one; raises InvalidInputError."""
    if value not in VERIFY_MODES:
        # It may have come from anywhere: a line for people stays one.
        shown = value if value.isprintable() and len(value) < 40 else repr(value[:40])
        raise InvalidInputError(f"{name}={shown}: want {' or '.join(VERIFY_MODES)}")
    return value
