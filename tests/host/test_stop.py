"""A join that another thread ends."""

from __future__ import annotations

import threading
import time

import pytest

from ina.host import Session, WorkerOptions
from ina.host.errors import SessionClosedError
from ina.host.stop import Stop
from tests.worlds.processes.silence import silent_server


@pytest.mark.parametrize("after_s", [0.0, 0.3])
def test_it_ends_at_once_and_none_begins_later(after_s: float) -> None:
    stop = Stop()
    timer = threading.Timer(after_s, stop.set)
    with silent_server() as address:
        timer.start()
        if not after_s:
            timer.join()
        began_s = time.monotonic()
        with pytest.raises(SessionClosedError, match="given up"):
            Session.join(address, "j", 0, 2, WorkerOptions(timeout_s=60.0, stop=stop))
        assert time.monotonic() - began_s < 10.0
    timer.join()
