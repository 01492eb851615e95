"""The table of ``ina bench windows``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ina.bench.agreement import GOODPUT_BOUND
from ina.bench.parse import size_text
from ina.bench.windows import FAIR_FACTOR, LEAST_JAIN, LEAST_SHARE, Schedule, WindowRow
from ina.bench.windows_agreement import FACTOR, Agreement
from ina.cli.bench.output import number

COLUMNS = (
    *("link", "algorithm", "case", "n", "Mbit/s", "±", "% of link", "job/fair", "TCP Mbit/s"),
    *("TCP/fair", "Jain", "% marked", "% dropped", "queue KiB", "window", "resent", "timeouts"),
    *("promises", "sim/real", "5 %", "TCP sim/real", "marks x2", "drops x2", "% busy", "#wrong"),
)
SPARE = (
    *("±", "window", "TCP Mbit/s", "timeouts", "resent", "% busy", "queue KiB", "TCP sim/real"),
    *("drops x2", "marks x2", "5 %"),
)


def cells(real: WindowRow, agrees: Agreement | None) -> tuple[Any, ...]:
    """Of one case."""
    kept = all(real.promises.values())
    return (
        *(real.link, real.algorithm, real.case, real.workers),
        *(_list(real.jobs_mbit_s, 1), number(real.job.width, 1)),
        *(number(100 * real.limit_share, 1), _list(real.jobs_fair, 2)),
        *(number(None if real.tcp is None else real.tcp.median, 1), number(real.tcp_fair)),
        number(None if real.jain is None else real.jain.median, 3),
        number(100 * real.marked_share),
        number(None if real.dropped_share is None else 100 * real.dropped_share),
        *(number(real.queue_kib, 0), number(real.window, 0), real.resends, real.timeouts),
        "yes" if kept else "NO",
        *(("-",) * 5 if agrees is None else _agreement_cells(agrees)),
        *(number(100 * real.busy, 0), real.wrong),
    )


def _agreement_cells(agrees: Agreement) -> tuple[Any, ...]:
    return (
        *(number(agrees.goodput, 3), "yes" if agrees.goodput_holds else "NO"),
        number(agrees.tcp),
        *(it.replace("no", "NO") for it in (agrees.marked_holds, agrees.dropped_holds)),
    )


def _list(values: Sequence[float], digits: int) -> str:
    return " ".join(f"{it:.{digits}f}" for it in values)


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
