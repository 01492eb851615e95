"""Network namespaces for tests: two hosts, each on a veth pair to this process."""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ina import netns
from ina.netns import End, NetnsError, ip_batch
from ina.netns import ip as ip_in


def require_root() -> None:
    """Skips the test, saying why, where namespaces cannot be made."""
    if why := netns.why_not():
        pytest.skip(why)
    name = f"ina{uuid.uuid4().hex[:6]}probe"
    try:
        netns.add(name)
    except NetnsError as error:  # a container whose root may not
        pytest.skip(f"cannot make network namespaces: {error}")
    netns.delete(name)


def ip(*arguments: str) -> None:
    netns.command("ip", *arguments)


@dataclass(frozen=True)
class Host:
    """A namespace with one interface, eth0, whose peer `interface` is ours."""

    namespace: str
    interface: str
    address: str
    mac: str

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """This thread in the host's namespace; sockets made here stay there."""
        return netns.inside(self.namespace)

    def udp_socket(self) -> socket.socket:
        with self.inside():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind((self.address, 0))
            sock.settimeout(5)
            return sock


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
            netns.add(host.namespace)
            netns.add_pairs([(End(None, host.interface), End(host.namespace, "eth0"))])
            ip_in(None, "link", "set", host.interface, "up")
            others = [other for other in made if other is not host]
            ip_batch(
                host.namespace,
                [
                    f"link set eth0 address {host.mac} up",
                    "link set lo up",
                    f"addr add {host.address}/24 dev eth0",
                    *(f"neigh add {one.address} lladdr {one.mac} dev eth0" for one in others),
                ],
            )
        yield made
    finally:
        for host in made:
            # The pair dies with the namespace that holds one end, but only after a while.
            with contextlib.suppress(NetnsError):
                ip_in(None, "link", "del", host.interface)
            with contextlib.suppress(NetnsError):
                netns.delete(host.namespace)
