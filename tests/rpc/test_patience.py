"""Whoever waits for a controller says so, again at growing intervals, and when it is back."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from ina.rpc.patience import Patience

_log = logging.getLogger("ina.patience")
DEADLINE_S = 10.0


def until_said(caplog: pytest.LogCaptureFixture, lines: int) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while len(caplog.records) < lines and time.monotonic() < end_s:
        time.sleep(0.005)


def test_who_why_and_for_how_long_yet(caplog: pytest.LogCaptureFixture) -> None:
    with Patience(_log, "job 'a' rank 0: controller c:1", 120.0, first_s=0.02) as patience:
        patience.why = "connection refused"
        until_said(caplog, 2)
        patience.heard()
    first, *more, last = caplog.records
    assert first.getMessage() == (
        "job 'a' rank 0: controller c:1 does not answer (connection refused): tried for 0 s,"
        " trying again for another 120 s"
    )
    assert more
    assert last.getMessage() == "job 'a' rank 0: controller c:1 is back, after 0 s"
    assert last.levelno == first.levelno == logging.WARNING


def test_who_answers_in_time_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    with Patience(_log, "controller c:1", 120.0) as patience:
        patience.heard()
    assert not caplog.records
    assert not [thread for thread in threading.enumerate() if thread.name == "ina-patience"]


def test_who_answered_and_does_not_any_more_is_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    with Patience(_log, "controller c:1", 120.0, first_s=0.1) as patience:
        patience.heard()
        patience.missed("connection refused")
        patience.missed("no route to host")  # the same wait goes on
        until_said(caplog, 1)
        patience.heard()
    first, last = (record.getMessage() for record in caplog.records)
    assert first.startswith("controller c:1 does not answer (no route to host): tried for 0 s,")
    assert last == "controller c:1 is back, after 0 s"
