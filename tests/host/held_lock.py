"""A worker beside one that does not run Python, as a process of its own.

Rank 0 has the controller and the switch in its process. `how`: ``hold``: it holds Python's lock for
longer than a lease, as a large pickle or a C extension may; ``stop``: it is stopped; ``wait``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from ina.controller.embedded import Embedded
from ina.host import Session, WorkerLostError, WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc

LEASE_S = 1.5
HOLD_S = 3
DEADLINE_S = 60.0


def main(rank: int, how: str, folder: Path) -> None:
    """What it says is in the folder, in ``said.RANK`` and ``log.RANK``."""
    for stream, name in ((sys.stdout, "said"), (sys.stderr, "log")):
        os.dup2(os.open(folder / f"{name}.{rank}", os.O_CREAT | os.O_WRONLY), stream.fileno())
    with contextlib.ExitStack() as stack:
        if rank == 0:
            config = {"jobs": {"lease_s": LEASE_S}}
            embedded = stack.enter_context(Embedded(values=64, slots=8, config=config))
            (folder / "part").write_text(embedded.controller_addr)
            (folder / "part").rename(folder / "address")
        until((folder / "address").exists)
        address = (folder / "address").read_text()
        session = stack.enter_context(
            Session.join(address, "j", rank, 2, WorkerOptions(controller_with_rank=0))
        )
        ones = np.ones(100, np.int32)
        session.all_reduce(ones)
        if rank == 0:
            until(lambda: all_watch(address))
            (folder / "all watch").touch()
        until((folder / "all watch").exists)
        if how == "hold":
            ctypes.PyDLL(None).sleep(HOLD_S)  # unlike CDLL it keeps the lock
        elif how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            total = session.all_reduce(ones)
        except WorkerLostError as error:
            print(error, flush=True)
        else:
            print(f"rank {rank}: {total[0]}", flush=True)
        if rank == 0:  # until the other has left, too

            def is_alone() -> bool:
                session.close()
                return not embedded.show().slots_used

            until(is_alone)


def until(holds: Callable[[], bool]) -> None:
    """Waits for it."""
    end = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {DEADLINE_S:g} s")
        time.sleep(0.01)


def all_watch(controller: str) -> bool:
    """Whether both ranks' streams of events are open."""
    with grpc.insecure_channel(controller) as channel:
        operator: Any = rpc.OperatorStub(channel)
        members = operator.ShowJob(pb2.ShowJobRequest(name="j"), timeout=DEADLINE_S).members
    return [member.watching for member in members] == [True, True]
