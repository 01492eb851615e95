"""Where a switch is for workers and other switches: whom packets that it sums are addressed to."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.controller.config import SwitchConfig
from ina.controller.config.fabric import mac_number
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
    mac = mac_number(switch.data_mac)
    return DataAddress(address, switch.data_udp_port, mac_of(address) if mac is None else mac)


def own_addresses(switch: SwitchConfig) -> tuple[IPv4Address, ...]:
    """What packets have as their destination that are for this switch itself."""
    told = (IPv4Address(host) for host in dict.fromkeys((switch.data_host, *switch.data_hosts)))
    return (*told, *((SHM_SWITCH,) if switch.data_shm else ()))
