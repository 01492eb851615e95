"""The client of a device under test ends, whatever its thread does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ina.testing import control_plane
from ina.testing.control_plane import P4RuntimeClient


def test_closing_does_not_wait_for_a_thread_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_plane, "STOP_S", 0.05)
    client = P4RuntimeClient.__new__(P4RuntimeClient)
    client._loop, release = asyncio.new_event_loop(), threading.Event()
    client._thread = threading.Thread(target=client._loop.run_forever, daemon=True)
    client._thread.start()
    client._loop.call_soon_threadsafe(release.wait)
    client._stop()
    assert client._thread.is_alive()
    assert not client._loop.is_closed()
    release.set()
    client._thread.join()
    client._stop()
    assert client._loop.is_closed()
