"""What a worker makes of the controller's word about its windows."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ina.congestion import Choice, Congestion
from ina.extension.host import EngineStats, WorkerCore
from ina.host.windows import Windows
from ina.rpc import controller_pb2 as pb2
from tests.worlds.virtual.cores import worker_config

FIXED = Congestion("fixed", {"packets": 8})
ADAPTIVE = Congestion("adaptive")


class Transport:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[bool, int]] = []

    def set_congestion(self, choice: Choice | None, most_packets: int) -> None:
        self.told.append((choice is not None, most_packets))


def word(number: int, congestion: Congestion | None, most_packets: int = 0) -> pb2.Windows:
    found = pb2.Windows(number=number, most_packets=most_packets)
    if congestion is not None:
        found.congestion.algorithm = congestion.algorithm
        found.congestion.options.update(congestion.options)
    return found


def state(windows: Windows) -> pb2.WindowState:
    worker = WorkerCore(worker_config(0, 1, 64, 64)).counters
    stats: Any = SimpleNamespace(
        worker=worker, window=32, in_flight_limit=8, shortest_ns=50_000, mean_ns=80_000
    )
    return windows.state(cast(EngineStats, stats))


def test_only_what_is_another_is_changed_so_that_windows_do_not_begin_anew() -> None:
    windows, transport = Windows(None), Transport()
    assert windows.of(ADAPTIVE) == ADAPTIVE
    for number, congestion, most_packets in (
        (1, ADAPTIVE, 0),  # as it is
        (2, ADAPTIVE, 40),
        (3, FIXED, 40),
        (3, FIXED, 40),  # again, as when the stream was opened anew
        (4, None, 0),
    ):
        windows.take(word(number, congestion, most_packets), transport)
    assert transport.told == [(False, 40), (True, 40), (False, 0)]
    told = state(windows)
    assert (told.number, told.most_packets, told.is_own) == (4, 0, False)
    assert (told.congestion.algorithm, dict(told.congestion.options)) == ("fixed", {"packets": 8})
    assert (told.packets, told.largest) == (8, 32)
    assert (told.shortest_s, told.mean_s) == pytest.approx((50e-6, 80e-6))


def test_a_later_mapping_begins_with_what_was_told_whatever_its_ticket_says() -> None:
    windows, transport = Windows(None), Transport()
    assert windows.of(ADAPTIVE) == ADAPTIVE
    assert windows.of(FIXED) == FIXED, "nobody has told anything yet"
    windows.take(word(1, ADAPTIVE), transport)
    assert windows.of(FIXED) == ADAPTIVE


def test_a_sessions_own_algorithm_stays_but_a_cap_holds_for_it_too() -> None:
    windows, transport = Windows(FIXED), Transport()
    assert windows.of(ADAPTIVE) == FIXED
    windows.take(word(1, ADAPTIVE, 5), transport)
    assert transport.told == [(False, 5)]
    told = state(windows)
    assert (told.is_own, told.congestion.algorithm, told.number) == (True, "fixed", 1)


def test_an_algorithm_that_this_version_has_not_is_left(caplog: pytest.LogCaptureFixture) -> None:
    windows, transport = Windows(None), Transport()
    windows.of(FIXED)
    unknown = pb2.Windows(number=7, most_packets=3)
    unknown.congestion.algorithm = "of next year"
    with caplog.at_level(logging.WARNING):
        windows.take(unknown, transport)
    assert "of next year" in caplog.text
    assert transport.told == [(False, 3)]
    assert (state(windows).congestion.algorithm, state(windows).number) == ("fixed", 7)
