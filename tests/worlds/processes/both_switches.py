"""Both switches as processes in a network namespace of their own, as a user would start them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ina.netns import inside, ip, within
from ina.testing.bmv2_device import cannot_run_bmv2, find_bmv2
from ina.testing.links import Links, cannot_link

GRPC_ADDR = "127.0.0.1:9559"  # of the namespace: it meets nobody else's
READY_DEADLINE_S = 120.0


@dataclass(frozen=True)
class Lab:
    """A switch with ports 1.., whose cables end at eth1.. of the same namespace."""

    namespace: str
    switch_ends: dict[int, str]  # port to the switch's interface

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(self.switch_ends)

    def run(
        self,
        *command: str,
        stdin: str = "",
        timeout_s: float = 200.0,
        environment: dict[str, str] | None = None,
    ) -> str:
        """Runs a command in the namespace; returns its stdout and stderr, checked for success."""
        done = subprocess.run(
            within(self.namespace, command),
            input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False,
            env={**os.environ, "PYTHONPATH": "", **(environment or {})},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@contextlib.contextmanager
def lab(kind: str, ports: int = 3, bmv2_options: tuple[str, ...] = ()) -> Iterator[Lab]:
    """Starts the switch ``kind``; skips the test, saying why, where it cannot be."""
    why = cannot_run_bmv2() if kind == "bmv2" else cannot_link()
    if why:
        pytest.skip(why)
    with Links(ports) as links:
        namespace = links.namespace
        ip(namespace, "link", "set", "lo", "up")
        command = within(namespace, _switch(kind, links.switch_ends, bmv2_options))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            _await_server(process, namespace)
            yield Lab(namespace, links.switch_ends)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def _switch(kind: str, ends: dict[int, str], bmv2_options: tuple[str, ...]) -> list[str]:
    if kind == "soft":
        ports = [word for n, end in ends.items() for word in ("--port", f"{n}=afpacket:{end}")]
        return [sys.executable, "-m", "ina", "switch", "--grpc-addr", GRPC_ADDR, *ports]
    interfaces = [f"-i{number}@{end}" for number, end in ends.items()]
    options = ["--grpc-server-addr", GRPC_ADDR, "--cpu-port", "510"]
    return [
        str(find_bmv2()),
        "--no-p4",
        "--device-id",
        "1",
        *bmv2_options,
        *interfaces,
        "--",
        *options,
    ]


def _await_server(process: subprocess.Popen[bytes], namespace: str) -> None:
    host, _, port = GRPC_ADDR.partition(":")
    until_s = time.monotonic() + READY_DEADLINE_S
    with inside(namespace):
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            assert process.poll() is None, "the switch has stopped"
            assert time.monotonic() < until_s, "the switch does not serve P4Runtime"
            time.sleep(0.1)
