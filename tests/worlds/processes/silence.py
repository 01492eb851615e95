"""Who does not answer, and who does not end: for tests of what then happens to who waits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 60.0


@contextmanager
def silent_server() -> Iterator[str]:
    """``host:port`` where connections are taken, by the kernel, and nobody says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        yield f"{host}:{port}"


@contextmanager
def stuck_thread() -> Iterator[threading.Thread]:
    """A thread that does not end before the block does."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait, args=(DEADLINE_S,), daemon=True)
    thread.start()
    try:
        yield thread
        assert thread.is_alive()  # nobody has waited for it to its end
    finally:
        release.set()
        thread.join(DEADLINE_S)


def program_that_hangs(file: Path) -> Path:
    """A program of any name that takes long, whatever it is told."""
    file.write_text("#!/bin/sh\nexec sleep 60\n")
    file.chmod(0o755)
    return file
