"""Where a switch is for workers and other switches: whom packets that it sums are addressed to."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.controller.config import SwitchConfig
from ina.protocol.addresses import SHM_SWITCH, mac_of


@dataclass(frozen=True)
class DataAddress:
    """Of a switch, as other switches see it."""

    address: IPv4Address
    udp_port: int
    mac: int
    """48 bits."""


def data_address(switch: SwitchConfig) -> DataAddress:
    """As configured; without a MAC address the one that follows from the IPv4 address."""
    address = IPv4Address(switch.data_host)
    mac = int(switch.data_mac.replace(":", ""), 16) if switch.data_mac else mac_of(address)
    return DataAddress(address, switch.data_udp_port, mac)


def own_addresses(switch: SwitchConfig) -> tuple[IPv4Address, ...]:
    """What packets have as their destination that are for this switch itself."""
    return (IPv4Address(switch.data_host), *((SHM_SWITCH,) if switch.data_shm else ()))
