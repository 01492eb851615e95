"""Waits for the signals that tell a command to end, and misses none."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def told_to_stop() -> Iterator[Callable[[], NoReturn]]:
    """Remember each SIGTERM and SIGINT from now on; in the main thread.

    Yields what blocks until one comes, or has come, and then raises SystemExit or KeyboardInterrupt
    as their handlers do. What a handler raises is lost where Python happens to run a finaliser: it
    prints the exception there and goes on. The number of the signal is in this pipe all the same.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait() -> NoReturn:
        while True:
            for number in os.read(reader, 64):
                if number == signal.SIGINT:
                    raise KeyboardInterrupt
                if number == signal.SIGTERM:
                    raise SystemExit(128 + number)

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
