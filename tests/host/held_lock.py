"""A worker beside one that does not run Python: ``python -m tests.host.held_lock RANK HOW FOLDER``.

Rank 0 has the controller and the switch in its process. HOW: ``hold``: it holds Python's lock for
longer than a lease, as a large pickle or a C extension may; ``stop``: it is stopped; ``wait``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from ina.controller.embedded import Embedded
from ina.host import Session, WorkerLostError, WorkerOptions

LEASE_S = 3.0
HOLD_S = 5


def main(rank: int, how: str, folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        address = folder / "address"
        if rank == 0:
            config = {"jobs": {"lease_s": LEASE_S}}
            embedded = stack.enter_context(Embedded(values=64, slots=8, config=config))
            (folder / "part").write_text(embedded.controller_addr)
            (folder / "part").rename(address)
        while not address.exists():
            time.sleep(0.01)
        session = stack.enter_context(
            Session.join(address.read_text(), "j", rank, 2, WorkerOptions(controller_with_rank=0))
        )
        ones = np.ones(100, np.int32)
        session.all_reduce(ones)
        time.sleep(1.5)  # the stream of events is open by now
        if how == "hold":
            ctypes.PyDLL(None).sleep(HOLD_S)  # unlike CDLL it keeps the lock
        elif how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            total = session.all_reduce(ones)
        except WorkerLostError as error:
            print(error)
        else:
            print(f"rank {rank}: {total[0]}")
        if rank == 0:  # until the other has left, too
            end = time.monotonic() + 30.0
            while embedded.show().slots_used and time.monotonic() < end:
                session.close()
                time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
