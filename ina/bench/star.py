"""A star of network namespaces whose links have a rate: a bridge, and the soft switch on it.

Each host, of one worker or several, is behind one veth pair. Both ends of the pair are shaped by a
token bucket, so each direction of each link has its own rate. The bridge in the middle forwards
frames between hosts in the kernel: that is the network that Gloo uses. The soft switch listens on a
UDP port of the bridge's own address, so its packets cross the same links and the bridge, and what
the bridge does not have to do is forward them. The links are not those of ``ina emulate``: there
offloads are off, so that P4 switches see frames as on a wire, and a soft switch on packet sockets
would be slower than the links; here super-packets (GSO) pass whole, for TCP and for UDP alike.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import msgspec

from ina import netns
from ina.bench.standing import Standing, standing
from ina.controller.config import USUAL_NETWORK
from ina.emulate import job, namespaces, remains
from ina.emulate.namespaces import namespace
from ina.emulate.processes import Logged
from ina.netns import End, ip

NET = "net"
"""The namespace of switches and controller."""
BRIDGE = "br0"
CENTRE = "10.77.0.254"
"""Of the bridge in the middle."""
CONTROLLER = f"{CENTRE}:17700"
BURST_BYTES = 80 << 10
"""What a link that was idle lets pass at once. A super-packet (64 KiB and its headers) must fit, or
the kernel cuts it up."""
QUEUE_BYTES = 1 << 20
"""At each end of a shaped link; what finds it full is dropped."""
LEAST_QUEUE_BYTES = BURST_BYTES
"""A shorter queue may have no room for a super-packet even when it is empty."""


@dataclass(frozen=True)
class StarNetwork:
    """Hosts in namespaces that are up; see :class:`ina.bench.testbed.Testbed`."""

    workers: int
    """Of all hosts."""
    link: str
    rate_bit_s: float | None
    state: remains.State
    processes: tuple[Logged, ...]
    """The controller and the switches; where one process has both, that."""
    racks: int = 0

    @property
    def hosts(self) -> int:
        """How many."""
        return len(self.state.hosts)

    def of(self, hosts: Sequence[remains.HostState]) -> StarNetwork:
        """The same, with some of its hosts."""
        state = msgspec.structs.replace(self.state, hosts=list(hosts))
        return replace(self, workers=sum(host.ranks for host in hosts), state=state)

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        timeout_s: float,
        on_line: Callable[[str], None],
    ) -> None:
        """A process a rank. Raises EmulationError, JobFailedError, DeadlineError."""

        def on_text(text: str) -> None:
            for line in text.splitlines():
                on_line(line)

        pairs = [f"{name}={value}" for name, value in environ.items()]
        job.run_job(
            self.state,
            self.state.hosts,
            ["env", *pairs, sys.executable, "-m", module, *arguments],
            timeout_s=timeout_s,
            on_text=on_text,
            check=self._check,
        )

    def _check(self) -> None:
        for process in self.processes:
            process.check()


@contextlib.contextmanager
def star(
    workers: int,
    link: str,
    rate_bit_s: float | None,
    *,
    values: int,
    ranks: int = 1,
    queue_bytes: int = QUEUE_BYTES,
    multicast: bool = False,
    loss: float = 0.0,
    seed: int = 0,
    congestion: Mapping[str, Any] = MappingProxyType({}),
    progress: Callable[[str], None] = lambda step: None,
) -> Iterator[StarNetwork]:
    """A star with a controller and a soft switch, until the block ends; then nothing is left.

    ``rate_bit_s``: of each link, each way; None: unshaped. ``values``: a packet. ``ranks``: of the
    workers, on each host; they share its link. ``queue_bytes``: at each end of a shaped link,
    ``LEAST_QUEUE_BYTES`` or more. ``multicast``: whether results go to all workers at once.
    ``loss``: of each packet at the switch's port, in each direction, by chance that follows from
    ``seed``. ``congestion``: the controller's table.

    Raises MissingToolError (needs root, ip and tc), EmulationError, NetnsError, UnavailableError,
    DeadlineError.
    """
    names = [f"h{number}" for number in range(1, workers // ranks + 1)]
    config = switch_config(values, multicast=multicast, congestion=congestion)
    with standing([NET, *names], config) as made:
        hosts = [host_of(made.name, number, ranks) for number in range(1, len(names) + 1)]
        progress(f"star of {len(hosts)} namespaces, links {link}")
        build(made.space(NET), hosts, rate_bit_s, queue_bytes)
        start_centre(made, config, f"--loss-rate={loss}", f"--loss-seed={seed}")
        yield network_of(made, link, rate_bit_s, hosts)


def start_centre(made: Standing, config: Mapping[str, Any], *options: str) -> None:
    """A controller with a soft switch, in ``NET``. Raises EmulationError, DeadlineError."""
    what = "controller and soft switch"
    made.start_controller(what, NET, config, "--embedded-switch", *options)


def network_of(
    made: Standing,
    link: str,
    rate_bit_s: float | None,
    hosts: Sequence[remains.HostState],
    switches: Sequence[str] = ("s1",),
    racks: int = 0,
) -> StarNetwork:
    """What stands, with those of its hosts, and the controller at the centre."""
    state = made.state(hosts, switches, CONTROLLER, made.space(NET))
    workers = sum(host.ranks for host in hosts)
    return StarNetwork(workers, link, rate_bit_s, state, tuple(made.processes), racks)


def host_of(network: str, number: int, ranks: int = 1) -> remains.HostState:
    """A host ``h1`` ... of a network, with an address that the centre's bridge reaches."""
    name = f"h{number}"
    return remains.HostState(name, f"10.77.0.{number}", namespace(network, name), ranks)


def build(
    net: str, hosts: Sequence[remains.HostState], rate_bit_s: float | None, queue_bytes: int
) -> None:
    """A bridge in ``net``, and hosts behind links to it. Raises NetnsError."""
    addresses = [(host.address, host.name) for host in hosts]
    netns.add_host(net)
    namespaces.give_names(net, addresses)
    add_bridge(net, CENTRE)
    for host in hosts:
        plug_in(host, net, addresses, rate_bit_s, queue_bytes)


def add_bridge(space: str, address: str = "") -> None:
    """A bridge in a namespace, with an address of its own if one is given. Raises NetnsError."""
    ip(space, "link", "add", BRIDGE, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
    if address:
        ip(space, "addr", "add", f"{address}/24", "dev", BRIDGE)
    ip(space, "link", "set", BRIDGE, "up")


def plug_in(
    host: remains.HostState,
    space: str,
    addresses: Sequence[tuple[str, str]],
    rate_bit_s: float | None,
    queue_bytes: int,
) -> None:
    """Makes a host, and joins it to a namespace's bridge by a link. Raises NetnsError.

    ``addresses``: with names, of those whom it shall know.
    """
    netns.add_host(host.namespace)
    namespaces.give_names(host.namespace, addresses)
    port = End(space, f"p-{host.name}")
    lay(port, End(host.namespace, "eth0"), rate_bit_s, queue_bytes)
    ip(space, "link", "set", port.interface, "master", BRIDGE)
    ip(host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")


def lay(one: End, other: End, rate_bit_s: float | None, queue_bytes: int) -> None:
    """A link, up, with a rate in each direction or without. Raises NetnsError."""
    netns.add_pairs([(one, other)])
    for end in (one, other):
        ip(end.space, "link", "set", end.interface, "up")
        if rate_bit_s is not None:
            netns.shape(end, rate_bit_s, burst_bytes(rate_bit_s), queue_bytes)


def burst_bytes(rate_bit_s: float) -> int:
    """Of a link's token bucket: half a millisecond of the rate at least.

    A busy machine's timers are so late.
    """
    return max(BURST_BYTES, round(rate_bit_s / 8 * 0.0005))


def switch_config(
    values: int, *, multicast: bool = False, congestion: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The controller's, of a switch in its own process at the centre."""
    return {
        "listen": CONTROLLER,
        "switch": {
            "data_host": CENTRE,
            "values": values,
            "multicast": USUAL_NETWORK if multicast else "",
        },
        "congestion": dict(congestion),
    }
