"""What is wrong with a configuration that types alone cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from ina.controller.config.store_url import problem_of
from ina.controller.config.tables import (
    DEFAULT_LISTEN,
    MAX_PORT,
    TOFINOS,
    Config,
    HostConfig,
    TlsConfig,
)
from ina.controller.config.tofino import (
    TARGET_VALUES,
    PortRef,
    host_place_problems,
    place_problems,
    port_problems,
    program_problem,
)
from ina.p4 import names
from ina.p4.builds import listed
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS

USUAL_NETWORK = "239.192.0.0/24"
"""Of the addresses that an organisation may use as it likes (RFC 2365, section 6.2)."""

_MULTICAST = IPv4Network("224.0.0.0/4")
_LINK_LOCAL = IPv4Network("224.0.0.0/24")
"""Of routing protocols and the like; hosts and switches treat these addresses in ways of their own.
"""


def network_of(text: str) -> IPv4Network | None:
    """The network that ``switch.multicast`` says; None: each worker gets results of its own.

    Raises :class:`ValueError` with one line about what is wrong.
    """
    if not text:
        return None
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an IPv4 network: {error}") from None
    if not network.subnet_of(_MULTICAST):
        raise ValueError(f"{text} is not within {_MULTICAST}, IPv4's multicast addresses")
    if network.overlaps(_LINK_LOCAL):
        raise ValueError(f"{text} has addresses of {_LINK_LOCAL}, which are for routing protocols")
    if network.num_addresses < names.JOBS_TOTAL:
        raise ValueError(
            f"{text} has {network.num_addresses} addresses, and each of {names.JOBS_TOTAL} jobs"
            " needs its own: a /24, or wider"
        )
    return network


def builds_of(target: str) -> tuple[int, ...]:
    """Values a packet of the builds that a target has."""
    return TARGET_VALUES.get(target, VALUES_PER_PACKET_BUILDS)


def problems(config: Config) -> list[tuple[str, str]]:
    """What types alone cannot say, as (key, problem)."""
    found = [
        (key, f"{address!r} is not host:port")
        for key, address in (
            ("listen", config.listen),
            ("switch.grpc_addr", config.switch.grpc_addr),
            ("metrics", config.metrics or DEFAULT_LISTEN),
        )
        if not _is_host_port(address)
    ]
    builds = builds_of(config.switch.target)
    if config.switch.values not in (0, *builds):
        found.append(("switch.values", f"{config.switch.values} is not {listed('or', builds)}"))
    if not _is_ipv4(config.switch.data_host):
        found.append(("switch.data_host", f"{config.switch.data_host!r} is not an IPv4 address"))
    try:
        network_of(config.switch.multicast)
    except ValueError as error:
        found.append(("switch.multicast", str(error)))
    for key, tls in (("tls", config.tls), ("switch_tls", config.switch_tls)):
        if bool(tls.cert) != bool(tls.key):
            found.append((key, "cert and key go together"))
    if config.tls.ca and not config.tls.cert:
        found.append(("tls.ca", "without cert and key the service has no TLS"))
    if config.store.url and config.store.path:
        found.append(("store", "url and path are two places: name one"))
    if problem := problem_of(config.store.location):
        found.append(("store.url", problem))
    for name in config.tenants:
        if not name or not name.isprintable():
            found.append(("tenants", f"{name!r} is not a name"))
    tofino = _tofino_problems if config.switch.is_tofino else _other_switch_problems
    return [*found, *_host_problems(config.hosts), *tofino(config)]


def _places(config: Config) -> Iterator[tuple[str, PortRef]]:
    """Where workers are behind, with the keys that say so."""
    yield "switch.data_port", config.switch.data_port
    for index, host in enumerate(config.hosts):
        yield f"hosts[{index}].port", host.port


def _other_switch_problems(config: Config) -> Iterator[tuple[str, str]]:
    """What only a Tofino has, and what only it may have."""
    switch = config.switch
    if switch.southbound == "bfrt":
        yield "switch.southbound", f"bfrt is for {' and '.join(TOFINOS)}, not for {switch.target}"
    for key in ("program", "p4info", "pipeline", "port", "mirror"):
        if getattr(switch, key):
            yield f"switch.{key}", f"only a Tofino has it, switch.target is {switch.target!r}"
    if switch.device_id == 0:
        yield "switch.device_id", "0: P4Runtime's devices begin at 1"
    for key, place in _places(config):
        if isinstance(place, str):
            yield key, f"{place!r}: only a Tofino behind BFRuntime has names of ports"
        elif not 1 <= place <= MAX_PORT:
            yield key, f"{place} is not 1 to {MAX_PORT}"


def _tofino_problems(config: Config) -> Iterator[tuple[str, str]]:
    switch = config.switch
    for key, place in _places(config):
        yield from place_problems(key, place, switch.target, switch.pipes)
        if isinstance(place, str) and switch.southbound != "bfrt":
            yield key, f"{place!r}: P4Runtime has no names of the front panel: give its number"
    yield from port_problems(switch.target, switch.pipes, switch.port, switch.mirror)
    for index, host in enumerate(config.hosts):
        yield from host_place_problems(f"hosts[{index}].port", host.port, switch.port)
    if switch.southbound == "bfrt":
        yield from _bfrt_problems(config)
        return
    if not (switch.p4info and switch.pipeline):
        key = "pipeline" if switch.p4info else "p4info"
        yield f"switch.{key}", "P4Runtime sets the program: name its P4Info and its device file"
    for key in ("port", "mirror", "program"):
        if getattr(switch, key):
            yield f"switch.{key}", "P4Runtime cannot set it; southbound = 'bfrt' can"


def _bfrt_problems(config: Config) -> Iterator[tuple[str, str]]:
    switch = config.switch
    problem = program_problem(switch.program)
    if problem:
        yield "switch.program", problem
    for key in ("p4info", "pipeline"):
        if getattr(switch, key):
            yield f"switch.{key}", "the SDE loads the program; BFRuntime only finds it there"
    if config.switch_tls != TlsConfig():
        yield "switch_tls", "the SDE's BFRuntime client has no TLS"


def _host_problems(hosts: tuple[HostConfig, ...]) -> list[tuple[str, str]]:
    found = []
    seen = set()
    for index, host in enumerate(hosts):
        key = f"hosts[{index}]"
        if not _is_ipv4(host.address):
            found.append((f"{key}.address", f"{host.address!r} is not an IPv4 address"))
        if host.address in seen:
            found.append((f"{key}.address", f"{host.address} is listed twice"))
        seen.add(host.address)
        if host.mac and not re.fullmatch(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", host.mac):
            found.append((f"{key}.mac", f"{host.mac!r} is not a MAC address"))
    return found


def _is_host_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(colon and host and port.isdecimal() and int(port) <= 0xFFFF)


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
