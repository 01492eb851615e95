"""The table of ``ina bench windows``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ina.bench.agreement import GOODPUT_BOUND
from ina.bench.parse import size_text
from ina.bench.windows import FAIR_FACTOR, LEAST_JAIN, LEAST_SHARE, Schedule
from ina.bench.windows_agreement import FACTOR
from ina.cli.bench.declare import Row
from ina.cli.common.columns import Column, percent


def _list(name: str, digits: int) -> Callable[[Row], str]:
    return lambda row: " ".join(f"{it:.{digits}f}" for it in row[name])


def _spread(name: str, of: str) -> Callable[[Row], float | None]:
    return lambda row: None if row[name] is None else row[name][of]


def _agreement(name: str) -> Callable[[Row], Any]:
    return lambda row: None if row["agreement"] is None else row["agreement"][name]


def _verdict(name: str) -> Callable[[Row], str | None]:
    def said(row: Row) -> str | None:
        found = _agreement(name)(row)
        if found is None:
            return None
        return ("yes" if found else "NO") if found in (True, False) else found.replace("no", "NO")

    return said


COLUMNS = (
    *(Column("link"), Column("algorithm"), Column("case"), Column("n", "workers")),
    Column("Mbit/s", _list("jobs_mbit_s", 1)),
    Column("±", lambda row: row["job"]["high"] - row["job"]["low"], 1),
    *(percent("% of link", "limit_share", 1), Column("job/fair", _list("jobs_fair", 2))),
    *(Column("TCP Mbit/s", _spread("tcp", "median"), 1), Column("TCP/fair", "tcp_fair", 2)),
    Column("Jain", _spread("jain", "median"), 3),
    *(percent("% marked", "marked_share", 2), percent("% dropped", "dropped_share", 2)),
    *(Column("queue KiB", "queue_kib", 0), Column("window", "window", 0)),
    *(Column("resent", "resends"), Column("timeouts")),
    Column("promises", lambda row: "yes" if all(row["promises"].values()) else "NO"),
    *(Column("sim/real", _agreement("goodput"), 3), Column("5 %", _verdict("goodput_holds"))),
    Column("TCP sim/real", _agreement("tcp"), 2),
    Column("marks x2", _verdict("marked_holds")),
    Column("drops x2", _verdict("dropped_holds")),
    *(percent("% busy", "busy", 0), Column("#wrong", "wrong")),
)
SPARE = (
    *("±", "window", "TCP Mbit/s", "timeouts", "resent", "% busy", "queue KiB", "TCP sim/real"),
    *("drops x2", "marks x2", "5 %"),
)


def notes(
    schedule: Schedule, queue_bytes: int, mark_bytes: int, lacking: Sequence[str]
) -> list[str]:
    """What a reader must know."""
    marks = f"marks above {size_text(mark_bytes)}" if mark_bytes else "never marks"
    found = [
        "jobs of two workers, one on either side of the link, and TCP (iperf3) across it; below"
        " them (star) a job alone with n"
        " workers, each behind a link of that rate in a star, with results by IP multicast",
        f"Mbit/s: of each job's int32, without headers; medians of {schedule.rounds} times"
        f" {schedule.round_s:g} s after {schedule.warm_s:g} s, ±: between the quartiles; % of link:"
        " jobs and TCP with their headers, by the rate; /fair: by an equal part of it",
        f"each end's queue takes {size_text(queue_bytes)} and {marks}; queue: 99th percentile over"
        " time of the longer one; marked: of results; dropped: of ina's packets at both, of the"
        " simulator's of all",
        f"promises, of ina's default algorithm: alone {100 * LEAST_SHARE:g} % of the link; Jain's"
        f" index of the jobs {LEAST_JAIN:g}; each part, TCP's too, within {FAIR_FACTOR:g} times an"
        " equal one",
        f"sim/real: all jobs' goodput in virtual time by that here, within {100 * GOODPUT_BOUND:g}"
        f" %; x{FACTOR:g}: whether shares of packets that are marked, and dropped, differ by no"
        " more",
    ]
    return [*found, *lacking]
