"""What a job says of itself, for controllers whose memory policy goes by it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from ina.errors import InvalidInputError

MAX_QUEUE_S = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Wishes:
    """Rank 0's are those of the job. All of it may be left out.

    Raises InvalidInputError.
    """

    deadline_unix_s: float = 0.0  # when it is to have ended; 0: it has no deadline
    steps: int = 0  # of training that it will take; 0: not known
    queue_s: float = 0.0  # how long it waits for slots where none are free, at most a week

    def __post_init__(self) -> None:
        """Check."""
        if not (math.isfinite(self.deadline_unix_s) and self.deadline_unix_s >= 0):
            raise InvalidInputError(f"deadline_unix_s is {self.deadline_unix_s}: not a time")
        if self.steps < 0:
            raise InvalidInputError(f"steps is {self.steps}: must not be negative")
        if not 0 <= self.queue_s <= MAX_QUEUE_S:
            raise InvalidInputError(
                f"queue_s is {self.queue_s:g}, must be 0 to {MAX_QUEUE_S:g} (a week)"
            )


NO_WISHES = Wishes()


def deadline_of(text: str, now_unix_s: float) -> float:
    """Unix time of "3600", seconds from now, or of "2026-11-25T18:00:00+01:00"; 0: of nothing.

    A time without an offset is this machine's local time. Raises InvalidInputError.
    """
    if not text:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise InvalidInputError(
                f"{text!r} is neither seconds from now nor a time as 2026-11-25T18:00:00+01:00"
            ) from None
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidInputError(f"{text!r}: a deadline is some seconds from now, or a time")
    return now_unix_s + seconds
