"""What is wrong with ``[[link]]`` and ``[[host]]`` that types alone cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address

from ina.controller.config.tables import Config, SwitchConfig
from ina.controller.config.tofino import Problem
from ina.fabric.ports import PortRef
from ina.p4.catalogue import capabilities
from ina.p4.errors import UnknownBuildError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""Of a switch: it is typed, and a label of metrics."""
MAC = re.compile(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")


def fabric_problems(config: Config) -> Iterator[Problem]:
    """As (key, problem)."""
    yield from _host_problems(config)
    switches = {switch.name: switch for switch in config.switches}
    for index, link in enumerate(config.links):
        key = f"link[{index}].switches"
        unknown = [name for name in link.switches if name not in switches]
        if unknown:
            yield key, f"no switch is called {unknown[0]!r}"
        elif link.switches[0] == link.switches[1]:
            yield key, f"{link.switches[0]!r} is at both ends"
        else:
            yield from _end_problems(key, *(switches[name] for name in link.switches))
    yield from _port_problems(config, switches)
    yield from values_problems(config)


def _end_problems(key: str, one: SwitchConfig, other: SwitchConfig) -> Iterator[Problem]:
    """What a tree over both would ask of them."""
    for switch in (one, other):
        try:
            able = capabilities(switch.runs).trees
        except UnknownBuildError:
            continue  # 0 values: not chosen yet; any other number has been told
        if not able:
            yield (
                key,
                f"{switch.name!r} runs the program {switch.runs}, which cannot sum in a tree of"
                " switches",
            )


def values_problems(config: Config) -> Iterator[Problem]:
    """A packet crosses a tree as it is, so switches that are joined want builds of one size.

    Those are left alone whose build is not chosen yet.
    """
    chosen = {switch.name: switch.values for switch in config.switches if switch.values}
    for index, link in enumerate(config.links):
        values = {name: chosen[name] for name in link.switches if name in chosen}
        if len(set(values.values())) > 1:
            each = " and ".join(f"{name!r} {count}" for name, count in values.items())
            yield f"link[{index}].switches", f"{each} values a packet: want the same on both"


def _port_problems(config: Config, switches: dict[str, SwitchConfig]) -> Iterator[Problem]:
    """A port has one cable. Behind a soft switch's ``data_port``, a UDP socket, are many."""
    used: dict[tuple[str, PortRef], str] = {}
    for index, host in enumerate(config.hosts):
        owner = host.switch or config.switch.name
        if host.port is not None:
            used.setdefault((owner, host.port), f"host[{index}]")
    for index, link in enumerate(config.links):
        for name, port in zip(link.switches, link.ports or (), strict=False):
            if name not in switches or _is_shared(switches[name], port):
                continue
            key = f"link[{index}].ports"
            former = used.setdefault((name, port), key)
            if former != key:
                yield key, f"port {port} of {name!r} is {former.removesuffix('.ports')}'s, too"


def _is_shared(switch: SwitchConfig, port: PortRef) -> bool:
    return switch.target == "soft" and port == switch.data_port


def _host_problems(config: Config) -> Iterator[Problem]:
    names_of = {switch.name for switch in config.switches}
    seen: dict[tuple[str, str], int] = {}
    for index, host in enumerate(config.hosts):
        key = f"host[{index}]"
        if not is_ipv4(host.address):
            yield f"{key}.address", f"{host.address!r} is not an IPv4 address"
        if host.switch and host.switch not in names_of:
            yield f"{key}.switch", f"no switch is called {host.switch!r}"
        elif not host.switch and len(config.switches) > 1:
            yield f"{key}.switch", "which one? there are several"
        if host.mac and not MAC.fullmatch(host.mac):
            yield f"{key}.mac", f"{host.mac!r} is not a MAC address"
        if (host.address, host.switch) in seen:
            yield f"{key}.address", f"{host.address} is listed twice"
        elif config.is_fabric:
            for (address, switch), former in seen.items():
                if address == host.address:
                    yield (
                        f"{key}.switch",
                        f"{address} is behind {switch!r}, too (host[{former}]), and a worker sends"
                        " to one: leave one out, or give each of its interfaces an address",
                    )
                    break
        seen.setdefault((host.address, host.switch), index)


def name_problem(name: str) -> str:
    """What is wrong with what a switch is called; empty: nothing."""
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r}: want up to 63 letters, digits, - _ and ."


def is_ipv4(text: str) -> bool:
    """Whether it is an IPv4 address."""
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
