"""Network namespaces for tests: two hosts, each on a veth pair to this process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

CLONE_NEWNET = 0x40000000


def require_root() -> None:
    """Skips the test, saying why, where namespaces cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("needs root: makes network namespaces")
    if shutil.which("ip") is None:
        pytest.skip("needs the ip command (package iproute2)")
    name = f"ina{uuid.uuid4().hex[:6]}probe"
    probe = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    if probe.returncode:  # a container whose root may not
        pytest.skip(f"cannot make network namespaces: {probe.stderr.strip()}")
    ip("netns", "del", name)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Host:
    """A namespace with one interface, eth0, whose peer `interface` is ours."""

    namespace: str
    interface: str
    address: str
    mac: str

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """This thread in the host's namespace; sockets made here stay there."""
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            other = os.open(f"/run/netns/{self.namespace}", os.O_RDONLY)
            _setns(other)
            os.close(other)
            try:
                yield
            finally:
                _setns(own)
        finally:
            os.close(own)

    def udp_socket(self) -> socket.socket:
        with self.inside():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind((self.address, 0))
            sock.settimeout(5)
            return sock


def _setns(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Hosts 10.77.0.1, .2, ... that know each other's MAC addresses; nothing connects them."""
    require_root()
    tag = uuid.uuid4().hex[:6]
    made = [
        Host(f"ina{tag}n{i}", f"i{tag}v{i}", f"10.77.0.{i}", f"02:00:0a:4d:00:{i:02x}")
        for i in range(1, count + 1)
    ]
    try:
        for host in made:
            ip("netns", "add", host.namespace)
            ip("link", "add", host.interface, "type", "veth", "peer", "name", "eth0",
               "netns", host.namespace)  # fmt: skip
            ip("link", "set", host.interface, "up")
            inside = ("-n", host.namespace)
            ip(*inside, "link", "set", "eth0", "address", host.mac, "up")
            ip(*inside, "link", "set", "lo", "up")
            ip(*inside, "addr", "add", f"{host.address}/24", "dev", "eth0")
            for other in made:
                if other is not host:
                    ip(*inside, "neigh", "add", other.address, "lladdr", other.mac, "dev", "eth0")
        yield made
    finally:
        for host in made:
            # The pair dies with the namespace that holds one end, but only after a while.
            subprocess.run(["ip", "link", "del", host.interface], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "del", host.namespace], capture_output=True, check=False)
