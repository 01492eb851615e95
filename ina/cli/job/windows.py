"""How a job's windows are shown to people: as they shall be and are, and what limits the job."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.text import Text

from ina.cli.common.output import FittingTable
from ina.rpc import controller_pb2 as pb2
from ina.units import time_text

_COLUMNS = (
    "rank", "algorithm", "window", "of", "least", "most", "cap", "shortest", "mean", "goodput",
    "last", "marks", "lost", "timeouts",
)  # fmt: skip
_SPARE_COLUMNS = ("least", "most", "timeouts", "of", "last", "goodput", "shortest")


def windows_view(shown: pb2.ShowJobReply) -> list[RenderableType]:
    """Nothing where the controller does not say, or no rank has yet."""
    windows = shown.job.windows
    told = [it for it in shown.members if it.progress.HasField("windows")]
    if not shown.job.HasField("windows"):
        return []
    parts: list[RenderableType] = [Text(wanted_text(windows), overflow="fold")]
    if told:
        of_ranks = {it.rank: it for it in windows.ranks}
        rows = [_row(it, of_ranks, windows.wanted.number) for it in told]
        parts.append(FittingTable(_COLUMNS, rows, _SPARE_COLUMNS, title="windows"))
    return parts


def wanted_text(windows: pb2.JobWindows) -> str:
    """What limits the job, and what the controller wants of its windows."""
    wanted = windows.wanted
    text = f"limited by: {windows.limited_by or 'not known'} ({windows.why})"
    text += f"\nwindows: {algorithm_text(wanted.congestion)}"
    if wanted.most_packets:
        text += f", at most {wanted.most_packets} packets"
    if windows.share_bits_per_s:
        text += (
            f"; share {_rate_text(windows.share_bits_per_s)} of {windows.bottleneck},"
            f" weight {windows.weight:g}"
        )
    return text


def algorithm_text(congestion: pb2.Congestion) -> str:
    """``fixed (packets 8)``."""
    given = ", ".join(f"{name} {value:g}" for name, value in sorted(congestion.options.items()))
    return f"{congestion.algorithm} ({given})" if given else congestion.algorithm


def _row(member: pb2.Member, of_ranks: Mapping[int, pb2.RankWindows], number: int) -> list[object]:
    state = member.progress.windows
    seen = of_ranks.get(member.rank, pb2.RankWindows())
    algorithm = algorithm_text(state.congestion)
    if state.is_own:
        algorithm += ", its own"
    elif state.number != number:
        algorithm += ", not told yet"
    return [
        member.rank,
        algorithm,
        state.packets,
        state.largest,
        seen.least_packets,
        seen.most_packets,
        state.most_packets or "-",
        time_text(state.shortest_s) if state.shortest_s else "",
        time_text(state.mean_s) if state.mean_s else "",
        _rate_text(seen.goodput_bits_per_s) if seen.goodput_bits_per_s else "",
        f"{seen.last_share:.0%}",
        state.marks,
        member.progress.losses,
        state.timeouts,
    ]


def _rate_text(bits_per_s: float) -> str:
    return f"{bits_per_s / 1e9:.3g} Gbit/s"
