"""How ``ina job show`` tells of windows."""

from __future__ import annotations

import io

from rich.console import Console, Group

from ina.cli.job.windows import windows_view
from ina.rpc import controller_pb2 as pb2


def reply() -> pb2.ShowJobReply:
    shown = pb2.ShowJobReply()
    windows = shown.job.windows
    windows.wanted.number, windows.wanted.most_packets = 4, 40
    windows.wanted.congestion.algorithm = "fixed"
    windows.wanted.congestion.options["packets"] = 100
    windows.weight, windows.share_bits_per_s, windows.bottleneck = 3, 7.5e9, "leaf1 > spine"
    windows.limited_by, windows.why = "link", "the cap is 40 packets: the job's share"
    for rank, number, is_own in ((0, 4, False), (1, 3, False), (2, 4, True)):
        member = shown.members.add(rank=rank)
        member.progress.losses = 17
        state = member.progress.windows
        state.number, state.is_own, state.most_packets = number, is_own, 40
        state.packets, state.largest, state.marks, state.timeouts = 38, 256, 5, 1
        state.congestion.CopyFrom(windows.wanted.congestion)
        state.shortest_s, state.mean_s = 80e-6, 120e-6
        windows.ranks.add(
            rank=rank, least_packets=32, most_packets=256, goodput_bits_per_s=5e9, last_share=0.25
        )
    shown.members.add(rank=3)  # it has not reported yet
    return shown


def lines(shown: pb2.ShowJobReply, width: int = 200) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(Group(*windows_view(shown)))
    return out.getvalue().splitlines()


def test_what_limits_a_job_and_each_ranks_window() -> None:
    shown = lines(reply())
    assert shown[0].rstrip() == "limited by: link (the cap is 40 packets: the job's share)"
    assert shown[1].rstrip() == (
        "windows: fixed (packets 100), at most 40 packets; share 7.5 Gbit/s of leaf1 > spine,"
        " weight 3"
    )
    rows = [line.split() for line in shown if line.strip()[:1].isdecimal()]
    end = ["38", "256", "32", "256", "40", "80", "µs", "120", "µs", "5", "Gbit/s", "25%", "5",
           "17", "1"]  # fmt: skip
    assert rows == [
        ["0", "fixed", "(packets", "100)", *end],
        ["1", "fixed", "(packets", "100),", "not", "told", "yet", *end],
        ["2", "fixed", "(packets", "100),", "its", "own", *end],
    ]


def test_a_narrow_terminal_has_what_matters_most() -> None:
    header = next(line for line in lines(reply(), 80) if line.strip().startswith("rank"))
    assert {"algorithm", "window", "cap", "marks", "lost"} <= set(header.split())


def test_an_older_controller_says_nothing_of_windows() -> None:
    assert windows_view(pb2.ShowJobReply()) == []
    only = pb2.ShowJobReply()
    only.job.windows.wanted.congestion.algorithm = "adaptive"
    assert [line.rstrip() for line in lines(only)] == [
        "limited by: not known ()",
        "windows: adaptive",
    ]
