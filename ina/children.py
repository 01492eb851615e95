"""Child processes that end with the process that started them, however that ends.

A child of multiprocessing does not see its parent's end by itself: it goes on with what it does, or
waits for ever for more, since it holds both ends of the pipe that it waits at.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``count`` processes that start fresh: a fork would have gRPC's threads.

    At the end of the ``with`` what was submitted is waited for. If the ``with`` ends by an
    exception (Ctrl-C is one, which the workers ignore), or this process does, the workers are
    killed at once, whatever they are doing.
    """
    context = multiprocessing.get_context("spawn")
    seen, held = context.Pipe(duplex=False)
    with seen, held, ProcessPoolExecutor(count, context, _begin, (seen,)) as pool:
        try:
            yield pool
        except BaseException:
            held.close()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(seen: Connection) -> None:
    """``seen``: nothing is ever sent; its end comes when nobody holds the other end any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        seen.poll(None)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=follow, name="end-with-parent", daemon=True).start()
