"""The part of the configuration that says how switches and hosts are joined."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Annotated

import msgspec
from msgspec import Meta

from ina.controller.config.tofino import MAX_DEVICE_PORT
from ina.controller.config.windows import RateGbit
from ina.fabric.ports import PortRef

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
