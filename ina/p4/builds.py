"""The compiled builds: which there are, and which of them a path bears."""

from __future__ import annotations

from collections.abc import Sequence

from ina.errors import InvalidInputError
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES, VALUES_PER_PACKET_BUILDS

IP_UDP_HEADER_BYTES = 20 + 8
_WINDOW_BYTES = 512 << 10


def listed(word: str, builds: Sequence[int] = VALUES_PER_PACKET_BUILDS) -> str:
    """``64, 256, 360 or 1024``: for messages. ``word`` comes before the last."""
    *others, last = map(str, builds)
    return f"{', '.join(others)} {word} {last}" if others else last


def require_build(option: str, values: int) -> None:
    """Raises :class:`~ina.errors.InvalidInputError`: no build has so many values a packet."""
    if values not in VALUES_PER_PACKET_BUILDS:
        raise InvalidInputError(f"{option} {values}: there are builds for {listed('and')}")


def default_job_slots(values: int) -> int:
    """Slots of a job, both versions, where nobody chose: its window is at most 512 KiB of values.

    That is what a core's cache holds of packets being built, or sums being written.
    """
    window_packets = min(256, _WINDOW_BYTES // (VALUE_BYTES * values))
    return 2 * window_packets


def packet_bytes(values: int) -> int:
    """Of an IP packet with so many values: what a path's MTU has to be at least."""
    return IP_UDP_HEADER_BYTES + HEADER_BYTES + VALUE_BYTES * values


def largest_build(mtu_bytes: int, builds: Sequence[int] = VALUES_PER_PACKET_BUILDS) -> int:
    """Values a packet of the largest of a target's builds whose packets pass whole.

    Raises :class:`~ina.errors.InvalidInputError`: none does.
    """
    fitting = [build for build in builds if packet_bytes(build) <= mtu_bytes]
    if not fitting:
        least = min(builds)
        raise InvalidInputError(
            f"MTU {mtu_bytes}: packets of the smallest build, {least} values, have"
            f" {packet_bytes(least)} bytes"
        )
    return max(fitting)
