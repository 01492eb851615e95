"""One rank of jobs that sum without a pause: rank 0 of all prints a JSON line at the end.

Before that it prints one as all have begun. All ranks of all jobs are in one more job, which is
their barrier and brings what they counted to rank 0. The clock is this machine's, of all ranks and
of whoever runs them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ina.bench.gathering import Gathering, joined
from ina.bench.stream import Stream
from ina.bench.testbed import asked_of
from ina.host import Session, SessionStats

COUNTS = (
    *("bytes_done", "packets_sent", "packets_received", "retransmissions", "losses"),
    *("spurious_resends", "probes", "timeouts", "ecn_marked", "send_drops"),
)
_DEPTH = 2
"""Tensors in flight: the next one is there as one ends."""
_FULL_CHECK_EVERY = 16
"""Sums; of the others some values are checked."""
_SOON_S = 0.2
"""From the barrier to the first tensor."""
_AFTER_S = 0.1
"""Sums go on for so long behind the last look, which comes a little late."""


@dataclass(frozen=True)
class WindowsOrder:
    """What the ranks are asked for."""

    jobs: int
    elems: int
    warm_s: float
    round_s: float
    rounds: int
    spoil: int


@dataclass(frozen=True)
class RankCounts:
    """What one rank counted in a round."""

    seconds: float
    window: int
    """Packets that it might have in flight at the end."""
    counts: dict[str, int]


@dataclass(frozen=True)
class Found:
    """All ranks' parts."""

    edges_s: list[float]
    """When rounds began, and the last one ended, by the monotonic clock."""
    parts: list[list[RankCounts]]
    """By rank of all, and by round."""
    wrong: int
    """Sums of all ranks."""


class Looks:
    """At a session's counts, at given times; a thread."""

    def __init__(self, session: Session, at_s: Sequence[float]) -> None:
        self._session = session
        self._at_s = at_s
        self._found: list[tuple[float, SessionStats]] = []
        self._thread = threading.Thread(target=self._run, name="looks")
        self._thread.start()

    def _run(self) -> None:
        for at_s in self._at_s:
            time.sleep(max(0.0, at_s - time.monotonic()))
            self._found.append((time.monotonic(), self._session.stats()))

    def numbers(self) -> list[int]:
        """Of each round: microseconds, the window, what was counted. Waits for the last look."""
        self._thread.join()
        numbers = []
        for (then_s, then), (now_s, now) in zip(self._found, self._found[1:], strict=False):
            numbers += [round(1e6 * (now_s - then_s)), now.in_flight_limit]
            numbers += [getattr(now, name) - getattr(then, name) for name in COUNTS]
        return numbers


def parts(numbers: Sequence[int]) -> list[RankCounts]:
    """From :meth:`Looks.numbers`."""
    width = 2 + len(COUNTS)
    return [
        RankCounts(
            numbers[at] / 1e6,
            numbers[at + 1],
            dict(zip(COUNTS, numbers[at + 2 : at + width], strict=True)),
        )
        for at in range(0, len(numbers), width)
    ]


def _edges_s(everyone: Gathering, warm_s: float, round_s: float, rounds: int) -> list[float]:
    """As rank 0 has them; nanoseconds of its clock are too many for 32 bits."""
    whole, rest = divmod(time.monotonic_ns() // 1000, 1_000_000)
    whole, rest = everyone.gather([whole, rest])[0].tolist()
    begin_s = whole + rest / 1e6 + _SOON_S + warm_s
    return [begin_s + number * round_s for number in range(rounds + 1)]


def main() -> None:
    """Runs all rounds, checks each sum, and tells."""
    asked = asked_of(WindowsOrder)
    with Gathering.of_all() as everyone:
        workers = everyone.workers // asked.jobs
        job, rank = divmod(everyone.rank, workers)
        stream = Stream(asked.elems, rank, workers, _DEPTH, _FULL_CHECK_EVERY)
        with joined(f"job{job + 1}", rank, workers, 0) as session:
            edges_s = _edges_s(everyone, asked.warm_s, asked.round_s, asked.rounds)
            looks = Looks(session, edges_s)
            if everyone.rank == 0:
                print(json.dumps({"edges_s": edges_s}), flush=True)
            time.sleep(max(0.0, edges_s[0] - asked.warm_s - time.monotonic()))
            ends_s = edges_s[-1] + _AFTER_S
            stream.run(session, lambda: time.monotonic() < ends_s)
            wrong = stream.wrong + (asked.spoil if everyone.rank == 0 else 0)
            rows = everyone.gather([wrong, *looks.numbers()])
        if everyone.rank == 0:
            found = Found(edges_s, [parts(row[1:].tolist()) for row in rows], int(rows[:, 0].sum()))
            print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    main()
