"""Where sums of jobs of mode ``shared`` are completed: ``[[aggregator]]``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ina.controller.config.fabric import SwitchPort
from ina.protocol.spec import UDP_PORT


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
