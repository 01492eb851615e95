"""The addresses of a switch, as configured."""

from __future__ import annotations

from ipaddress import IPv4Address

from ina.controller.config import SwitchConfig
from ina.controller.config.fabric import mac_number
from ina.protocol.addresses import SHM_SWITCH
from ina.protocol.peer import Peer


def data_address(switch: SwitchConfig) -> Peer:
    """As other switches and workers send to it."""
    mac = mac_number(switch.data_mac)
    return Peer(IPv4Address(switch.data_host), switch.data_udp_port, mac)


def own_addresses(switch: SwitchConfig) -> tuple[IPv4Address, ...]:
    """What packets have as their destination that are for this switch itself."""
    told = (IPv4Address(host) for host in dict.fromkeys((switch.data_host, *switch.data_hosts)))
    return (*told, *((SHM_SWITCH,) if switch.data_shm else ()))
