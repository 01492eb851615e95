"""Two hosts in network namespaces: one runs a controller and a soft switch, the other asks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina import netns
from ina.netns import End, NetnsError, ip, within
from tests.worlds.processes.namespaces import require_root
from tests.worlds.processes.stand_ins import python

SERVER_DATA, CLIENT_DATA = "10.77.0.1", "10.77.0.2"
SERVER_CONTROL, CLIENT_CONTROL = "10.77.1.1", "10.77.1.2"
CONFIG = f"""
listen = "{SERVER_CONTROL}:17700"
[switch]
data_host = "{SERVER_DATA}"
values = 256
"""
_START_TIMEOUT_S = 120.0
_DOCTOR_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class TwoHosts:
    """Namespaces joined by a veth pair, eth0 in both; data and control have addresses of their own,
    so that a test can break one and keep the other."""

    server: str
    client: str

    def doctor(self) -> tuple[int, dict[str, dict[str, Any]]]:
        """Runs ``ina doctor`` on the client; returns its exit code and its steps by name."""
        result = subprocess.run(
            [*_inside(self.client), "doctor", "--controller", f"{SERVER_CONTROL}:17700", "--json"],
            capture_output=True, text=True, timeout=_DOCTOR_TIMEOUT_S, check=False,
        )  # fmt: skip
        assert result.stdout, result.stderr
        return result.returncode, {s["name"]: s for s in json.loads(result.stdout)["path"]}


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[TwoHosts]:
    """Skips the test, saying why, where namespaces cannot be made."""
    require_root()
    tag = uuid.uuid4().hex[:6]
    names = TwoHosts(f"ina{tag}s", f"ina{tag}c")
    try:
        for namespace in (names.server, names.client):
            netns.add(namespace)
            ip(namespace, "link", "set", "lo", "up")
        netns.add_pairs([(End(names.server, "eth0"), End(names.client, "eth0"))])
        for namespace, addresses in (
            (names.server, (SERVER_DATA, SERVER_CONTROL)),
            (names.client, (CLIENT_DATA, CLIENT_CONTROL)),
        ):
            for address in addresses:
                ip(namespace, "addr", "add", f"{address}/24", "dev", "eth0")
            ip(namespace, "link", "set", "eth0", "up")
        with _controller(names.server, folder):
            yield names
    finally:
        for namespace in (names.server, names.client):
            with contextlib.suppress(NetnsError):
                netns.delete(namespace)


@contextlib.contextmanager
def _controller(namespace: str, folder: Path) -> Iterator[None]:
    file = folder / "controller.toml"
    file.write_text(CONFIG)
    process = subprocess.Popen(
        [*_inside(namespace), "controller", "run", str(file), "--embedded-switch", "--json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert "controller" in process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.communicate(timeout=_START_TIMEOUT_S)


def _inside(namespace: str) -> list[str]:
    return within(namespace, [python(), "-m", "ina"])
