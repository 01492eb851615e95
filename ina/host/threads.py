"""How many threads drive a worker's transport."""

from __future__ import annotations

import logging
import os

from ina.errors import InvalidInputError
from ina.extension.host import TransportStats

_log = logging.getLogger(__name__)

COUNTS = (1, 2, 4, 8)
AUTOMATIC = 0
_MOST_AUTOMATIC = 4
_CORES_A_THREAD = 4  # the training itself needs the others


def check_threads(name: str, value: int) -> None:
    """Raise InvalidInputError unless the value, of what is called `name`, is a number of them."""
    if value != AUTOMATIC and value not in COUNTS:
        raise InvalidInputError(
            f"{name}={value}: want {', '.join(map(str, COUNTS))}, or 0 (automatic)"
        )


def wanted(threads: int, local_workers: int) -> int:
    """Return how many there are to be: `threads`, or if that is 0, as the cores allow.

    One for each four cores that each of the `local_workers` of this host may use, 1 to 4.
    """
    if threads != AUTOMATIC:
        return threads
    cores = len(os.sched_getaffinity(0)) // max(local_workers, 1)
    found = 1
    while 2 * found <= min(cores // _CORES_A_THREAD, _MOST_AUTOMATIC):
        found *= 2
    return found


def tell_less(who: str, threads: int, tried: int, stats: TransportStats, path: str) -> None:
    """Log that a transport has fewer than the `tried` threads, or one queue for all of them.

    `threads`: what was asked for.
    """
    level = logging.INFO if threads == AUTOMATIC else logging.WARNING
    got = stats.threads
    if got < tried:
        why = "it is for one" if got == 1 else "there are as many as packets in flight may be"
        _log.log(level, "%s: %d of %d threads on %s: %s", who, got, tried, path, why)
    if stats.queues < got:
        why = stats.one_queue_why
        _log.log(level, "%s: one socket for %d threads on %s: %s", who, got, path, why)
