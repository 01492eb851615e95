"""Done-callbacks that start and wait for further operations."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.host import Handle
from tests.worlds.fakes.udp_model import UdpModel, closing


def test_a_callback_may_wait_for_operations_that_it_starts() -> None:
    """Three deep, and the callback of an operation that ended meanwhile runs too."""
    with UdpModel() as switch, closing(switch.sessions(1)) as (session,):
        depths: list[float] = []
        deep, beside = threading.Event(), threading.Event()

        def go_on(handle: Handle[NDArray[Any]]) -> None:
            depths.append(float(handle.wait(30)[0]))
            if len(depths) == 3:
                deep.set()
                return
            inner = session.all_reduce(np.full(9, len(depths), np.float32), async_op=True)
            inner.add_done_callback(go_on)
            other = session.all_reduce(np.ones(1, np.float32), async_op=True)
            other.add_done_callback(lambda _: beside.set())
            assert deep.wait(30)
            assert beside.wait(30)

        session.all_reduce(np.zeros(9, np.float32), async_op=True).add_done_callback(go_on)
        assert deep.wait(30)
        assert depths == [0.0, 1.0, 2.0]
    assert not [thread for thread in threading.enumerate() if "ina-done" in thread.name]
