"""Windows in Python on the wire: C++'s threads call them, also while the interpreter ends."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ina.congestion import Congestion, WindowError
from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.testing import numerics
from tests.host.sums import reduce_all
from tests.worlds.fakes.udp_model import closing
from tests.worlds.parts import random_parts
from tests.worlds.virtual import windows
from tests.worlds.virtual.windows import Kept

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
MODULE = windows.__name__


@contextmanager
def pair(
    embedded: Embedded, window: str, transport: Literal["shm", "udp"] = "shm"
) -> Iterator[list[Session]]:
    """Two workers; the first has a window in Python, the other the controller's."""
    own = Congestion(f"{MODULE}:{window}")
    with ThreadPoolExecutor(2) as pool:
        sessions = list(
            pool.map(
                lambda rank: Session.join(
                    *(embedded.controller_addr, window, rank, 2),
                    options=WorkerOptions(
                        congestion=own if rank == 0 else None, transport=transport
                    ),
                ),
                range(2),
            )
        )
    with closing(sessions):
        yield sessions


def exact(sessions: list[Session], dtype: np.dtype[np.int32] | np.dtype[np.float32]) -> bool:
    parts = random_parts(dtype, 2, 100_003)
    want = numerics.all_reduce(parts, "sum", sessions[0].ticket.values_per_packet)
    return all(numerics.same_bits(got, want) for got in reduce_all(sessions, parts))


@pytest.mark.parametrize(("transport", "window"), [("shm", "Kept"), ("udp", "Restless")])
def test_a_pair_of_sessions_sums_exactly(transport: Literal["shm", "udp"], window: str) -> None:
    Kept.forget()
    loss = 0.02 if transport == "udp" else 0.0
    with (
        Embedded(values=256, loss_rate=loss, shm=transport == "shm") as embedded,
        pair(embedded, window, transport) as sessions,
    ):
        assert exact(sessions, np.dtype(np.int32))
        assert exact(sessions, np.dtype(np.float32))
        results = sessions[0].stats().chunks_done
    if window == "Kept":
        assert sum(it.answers for it in Kept.batches) >= results > 0
        assert threading.current_thread().name not in Kept.threads
        times = [it.now_ns for it in Kept.batches]
        assert times == sorted(times)


def test_its_mistake_is_raised_by_what_is_submitted_next(caplog: pytest.LogCaptureFixture) -> None:
    with Embedded(values=256, shm=True) as embedded, pair(embedded, "Broken") as sessions:
        assert exact(sessions, np.dtype(np.int32))  # it goes on as it was
        one = np.ones(1000, np.int32)
        complaint = f"the window '{MODULE}:Broken' failed in on_batch: ZeroDivisionError"
        for _ in range(2):  # who has failed stays so
            with pytest.raises(WindowError, match=complaint) as raised:
                sessions[0].all_reduce(one)
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert "ZeroDivisionError" not in caplog.text  # who has raised it needs no line in the log


def test_a_mistake_that_nobody_heard_of_is_logged_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Embedded(values=256, shm=True) as embedded, pair(embedded, "Broken") as sessions:
        assert exact(sessions, np.dtype(np.int32))
    (told,) = [it for it in caplog.records if "ZeroDivisionError" in it.message]
    assert told.levelno == logging.ERROR
    assert "Traceback" in told.message


# A window that is in Python nearly all of the time, so that it is there whenever something happens.
_SCRIPT = """
import os, sys, time
import numpy as np
from ina.congestion import Batch, Congestion, Window
from ina._native.host import RtoLimits, Transport, TransportOptions
from ina.protocol.collective import Collective
from ina.host import Session, WorkerOptions
from ina.host.udp import UdpLink, open_socket
from ina.protocol.peer import Peer
from tests.worlds.fakes.udp_model import UdpModel

class Slow(Window):
    calls = 0
    nap_s = 0.01
    def on_batch(self, batch: Batch) -> None:
        Slow.calls += 1
        time.sleep(Slow.nap_s)

def until_it_is_called():
    before = Slow.calls
    while Slow.calls == before:
        time.sleep(0.001)

switch = UdpModel(slots=64, values=64)
data = np.arange(64 * 5000, dtype=np.int32)
out = np.empty_like(data)
window = Congestion("__main__:Slow")
"""
_SESSION = """
link = UdpLink.open(Peer.at(switch.address), "127.0.0.1")
switch.install_ports(7, 1, [link.own.udp_port])
session = Session(switch.ticket(7, 1, 0, 1), link, WorkerOptions(congestion=window))
handle = session.all_reduce(data, out=out, async_op=True)
until_it_is_called()
"""
_TRANSPORT = """
sock = open_socket(Peer.at(switch.address), "127.0.0.1")
switch.install(7, 1, [sock])
ticket = switch.ticket(7, 1, 0, 1)
config = ticket.worker_config(stall_timeout_ns=10**11, rto=RtoLimits(), keep_results=False)
options = TransportOptions(congestion=window.choice())
transport = Transport.udp(sock.fileno(), config, 1 << 20, options)
operation = transport.submit(data.ctypes.data, out.ctypes.data, Collective(0, data.size))
until_it_is_called()
"""
_AGAIN = """
until_it_is_called()
"""
_END = """
switch.close()  # its thread is no daemon
print("end", flush=True)
"""
_PROGRAMS = {
    "with a transport that nobody closes": _TRANSPORT + _END,
    "with a window that does not return": _TRANSPORT + "Slow.nap_s = 1000.0\n" + _AGAIN + _END,
    "with a transport that is let go": _TRANSPORT
    + """
del transport, operation
calls = Slow.calls
time.sleep(0.1)
assert Slow.calls == calls, "its threads go on"
"""
    + _END,
    "with a session, and children": _SESSION
    + """
for _ in range(5):
    until_it_is_called()
    child = os.fork()
    if child == 0:
        session.close()
        del session, handle
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
until_it_is_called()
child = os.fork()
if child == 0:
    sys.exit(4)  # by way of atexit
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
until_it_is_called()  # the parent's goes on, and nobody closes it
"""
    + _END,
}


@pytest.mark.parametrize("program", _PROGRAMS)
def test_a_program_ends(program: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT + _PROGRAMS[program]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (ran.returncode, ran.stdout) == (0, "end\n"), ran.stderr
