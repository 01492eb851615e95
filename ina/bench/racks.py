"""Racks of network namespaces below a spine: a star's bridge and soft switch in each, joined.

Hosts are as in a star (:mod:`ina.bench.star`), each behind one link to its rack's bridge. The
kernel routes between a rack's bridge and its uplink, and in the spine between uplinks: that is what
Gloo's ring crosses. Each rack has a soft switch on its bridge's address, and the spine one, too,
beside the controller, which knows the fabric: so a rack's sum goes up its uplink once, and the
result comes down once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina import netns
from ina.bench.standing import P4RUNTIME_PORT, own_name, standing
from ina.bench.star import (
    CENTRE,
    CONTROLLER,
    NET,
    QUEUE_BYTES,
    StarNetwork,
    add_bridge,
    lay,
    network_of,
    plug_in,
)
from ina.controller.config import USUAL_NETWORK
from ina.emulate import namespaces, remains
from ina.emulate.namespaces import namespace
from ina.netns import End, ip

MAX_RACKS = 32
"""A spine adds up so many."""
SPINE = "spine"
_UPLINK = "uplink"
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True)
class Rack:
    """A switch and the hosts at it."""

    name: str
    space: str
    address: str
    hosts: tuple[remains.HostState, ...]


def rack_of(worker: int, workers: int, racks: int) -> int:
    """Both from 0. Neighbours are in one rack, so a ring crosses each uplink once each way."""
    return worker * racks // workers


@contextlib.contextmanager
def racks(
    workers: int,
    count: int,
    link: str,
    rate_bit_s: float | None,
    uplink_bit_s: float | None,
    *,
    values: int,
    queue_bytes: int = QUEUE_BYTES,
    multicast: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> Iterator[StarNetwork]:
    """``count`` racks with a controller and soft switches, until the block ends.

    ``link``: what to call their links. ``rate_bit_s``: of a host's link, each way,
    ``uplink_bit_s``: of a rack's; None: unshaped. ``values``: a packet. ``queue_bytes``: at each
    end of a shaped link. ``multicast``: whether a rack's switch sends results to all its workers at
    once.

    Raises MissingToolError (needs root, ip and tc), EmulationError, NetnsError, UnavailableError,
    DeadlineError.
    """
    made = _plan(own_name(), workers, count)
    hosts = [host for rack in made for host in rack.hosts]
    names = [*(rack.name for rack in made), *(host.name for host in hosts)]
    config = _config(made, values, multicast)
    with standing([NET, *names], config) as network:
        progress(f"{count} racks of {workers} namespaces, links {link}")
        _build(network.space(NET), made, rate_bit_s, uplink_bit_s, queue_bytes)
        network.start_switch(f"soft switch {SPINE}", NET, CENTRE)
        for rack in made:
            network.start_switch(f"soft switch {rack.name}", rack.name, rack.address)
        network.start_controller("the controller", NET, config)
        switches = [SPINE, *(rack.name for rack in made)]
        rates = [rate for rate in (rate_bit_s, uplink_bit_s) if rate is not None]
        yield network_of(network, link, min(rates, default=None), hosts, switches, count)


def _plan(name: str, workers: int, count: int) -> list[Rack]:
    hosts: list[list[remains.HostState]] = [[] for _ in range(count)]
    for worker in range(workers):
        rack = rack_of(worker, workers, count)
        host = f"h{worker + 1}"
        address = f"10.77.{rack + 1}.{len(hosts[rack]) + 1}"
        hosts[rack].append(remains.HostState(host, address, namespace(name, host)))
    return [
        Rack(f"rack{number}", namespace(name, f"rack{number}"), f"10.77.{number}.254", tuple(here))
        for number, here in enumerate(hosts, 1)
    ]


def _build(
    net: str,
    made: Sequence[Rack],
    rate_bit_s: float | None,
    uplink_bit_s: float | None,
    queue_bytes: int,
) -> None:
    """Bridges in the racks, routes between them: results for all of a rack stay in it."""
    addresses = [(host.address, host.name) for rack in made for host in rack.hosts]
    for space in (net, *(rack.space for rack in made)):
        netns.add_host(space)
        namespaces.give_names(space, addresses)
        with netns.inside(space):
            _FORWARD.write_text("1")
    ip(net, "addr", "add", f"{CENTRE}/32", "dev", "lo")
    for number, rack in enumerate(made, 1):
        add_bridge(rack.space, rack.address)
        below, above = f"10.78.{number}.1", f"10.78.{number}.2"
        lay(End(rack.space, _UPLINK), End(net, rack.name), uplink_bit_s, queue_bytes)
        ip(rack.space, "addr", "add", f"{below}/24", "dev", _UPLINK)
        ip(rack.space, "route", "add", "default", "via", above)
        ip(net, "addr", "add", f"{above}/24", "dev", rack.name)
        ip(net, "route", "add", f"10.77.{number}.0/24", "via", below)
        for host in rack.hosts:
            plug_in(host, rack.space, addresses, rate_bit_s, queue_bytes)
            ip(host.namespace, "route", "add", "default", "via", rack.address)


def _config(made: Sequence[Rack], values: int, multicast: bool) -> dict[str, Any]:
    switches = [(SPINE, CENTRE), *((rack.name, rack.address) for rack in made)]
    return {
        "listen": CONTROLLER,
        "switch": [
            {
                "name": name,
                "grpc_addr": f"{address}:{P4RUNTIME_PORT}",
                "data_host": address,
                "values": values,
                "multicast": USUAL_NETWORK if multicast else "",
            }
            for name, address in switches
        ],
        "link": [{"switches": [rack.name, SPINE]} for rack in made],
        "host": [
            {"address": host.address, "switch": rack.name} for rack in made for host in rack.hosts
        ],
    }
