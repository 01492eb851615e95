"""The part of the configuration that says how switches, hosts and aggregators are joined."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Annotated

import msgspec
from msgspec import Meta

from ina.controller.config.tofino import MAX_DEVICE_PORT
from ina.fabric.ports import PortRef
from ina.protocol.spec import UDP_PORT

RateGbit = Annotated[float, Meta(gt=0, le=1e6)]
"""Of a link, each way, in Gbit/s of packets with all their headers."""
SwitchPort = Annotated[int, Meta(ge=0, le=MAX_DEVICE_PORT)] | str
"""A switch's number of a port; of a Tofino behind BFRuntime also a name on its front panel."""


class HostConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where a host is attached."""

    address: str
    """IPv4."""
    port: SwitchPort | None = None
    """Of the switch; None: its ``data_port``."""
    switch: str = ""
    """Its name; empty: there is one."""
    mac: str = ""
    """02:00:0a:00:00:01; empty: derived from the address, as behind a UDP port."""
    rate_gbit: RateGbit | None = None
    """Of its cable, each way; None: not known."""


class LinkConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What joins two switches."""

    switches: tuple[str, str]
    """Their names."""
    ports: tuple[SwitchPort, SwitchPort] | None = None
    """Of the first and of the second; None: of each its ``data_port``, as between soft switches
    behind UDP ports, whose one socket reaches everybody."""
    rate_gbit: RateGbit | None = None
    """Each way; None: not known."""


def endpoints(
    hosts: Sequence[HostConfig], switch: str, data_port: PortRef
) -> dict[IPv4Address, tuple[PortRef, int | None]]:
    """By address of the hosts behind a switch: its port and the MAC address (None: derived)."""
    return {
        IPv4Address(host.address): (
            data_port if host.port is None else host.port,
            mac_number(host.mac),
        )
        for host in hosts
        if host.switch in ("", switch)
    }


def mac_number(text: str) -> int | None:
    """48 bits of ``02:00:0a:00:00:01``; None: there is none."""
    return int(text.replace(":", ""), 16) if text else None


class AggregatorConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A soft switch on some host (``ina aggregator``), behind a port of a switch of ``[[switch]]``.

    It runs the program of mode ``shared`` with as many values a packet as that switch.
    """

    name: str
    """What people, the store and the controller's answers call it; no switch is called so."""
    grpc_addr: str
    """host:port of its P4Runtime server."""
    data_host: str
    """IPv4 address that switches send to."""
    data_udp_port: Annotated[int, Meta(ge=1, le=0xFFFF)] = UDP_PORT
    data_mac: str = ""
    """MAC address of ``data_host``; empty: derived from the address, as behind a UDP port."""
    data_hosts: tuple[str, ...] = ()
    """IPv4 addresses, besides ``data_host``, that packets for it have when they get there."""
    data_port: Annotated[int, Meta(ge=1, le=510)] = 1
    """Its own port, that switches are behind."""
    switch: str = ""
    """The switch that it is behind, by name; empty: there is one."""
    port: SwitchPort | None = None
    """That switch's port; None: its ``data_port``."""
    device_id: Annotated[int, Meta(ge=1)] = 1
    election_id: Annotated[int, Meta(ge=1)] = 1
    """The controller with the highest one is primary."""
    loss_s: Annotated[float, Meta(gt=0)] = 10.0
    """It is lost when the controller and a worker have heard nothing of it for so long."""
