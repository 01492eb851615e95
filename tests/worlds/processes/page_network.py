"""A network of its own for a page, so that the fixed ports in docs never meet another run's."""

from __future__ import annotations

import errno
import re
import socket
import subprocess
import sys
from pathlib import Path

from tests.docs.page import Block

# Runs in the new namespace: brings lo up (SIOCSIFFLAGS, IFF_UP), says so, and holds the namespace.
_HOLDER = """
import fcntl, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    fcntl.ioctl(sock, 0x8914, struct.pack("16sh14x", b"lo", 1))
print("up", flush=True)
sys.stdin.read()
"""
_LOCAL_PORT = re.compile(r"127\.0\.0\.1:(\d{4,5})\b")


class PrivateNetwork:
    """A network namespace with nothing but lo. Where none can be made, ``prefix`` is empty."""

    def __init__(self) -> None:
        self._holder: subprocess.Popen[str] | None = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-c", _HOLDER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "up\n":  # not root, or a container that forbids it
            self.close()

    @property
    def file(self) -> Path | None:
        """The kernel's file of it."""
        return None if self._holder is None else Path(f"/proc/{self._holder.pid}/ns/net")

    @property
    def prefix(self) -> list[str]:
        """What to put before a command so that it runs in this network."""
        return [] if self.file is None else ["nsenter", f"--net={self.file}"]

    def close(self) -> None:
        """Let the namespace go."""
        if self._holder is not None:
            self._holder.communicate()  # closes its stdin: it ends
            self._holder = None


def ports_taken(blocks: list[Block]) -> list[int]:
    """Ports of 127.0.0.1 that the blocks' commands name and that somebody holds, TCP or UDP."""
    named = set()
    for block in blocks:
        text = block.script if block.language == "console" else block.text
        named |= {int(port) for port in _LOCAL_PORT.findall(text)}
    return sorted(port for port in named if _taken(port))


def _taken(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            if kind == socket.SOCK_STREAM:  # what servers do: TIME_WAIT holds nobody up
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return True
                raise
    return False
