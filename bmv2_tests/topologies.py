"""The topologies. Every node but the bridge itself has a second leg in the control network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bmv2_tests.plans import Plan
from bmv2_tests.switches import CLASSES, CONTROL_PORT, ControlBridge

from mininet.topo import Topo  # isort: skip - Mininet can be imported only now

CONTROLLER = "c0"
CONTROLLER_ADDRESS = "10.255.0.254"


class PlanTopo(Topo):  # type: ignore[misc]
    """A plan for Mininet."""

    def build(  # type: ignore[no-untyped-def]
        self, plan: Plan, kind: str, folder: Path, **switch_options: Any
    ):
        """``kind``: a key of CLASSES; ``switch_options`` go to its constructor."""
        self.addSwitch("b1", cls=ControlBridge)
        self.addHost(CONTROLLER, ip=None)
        self._control(CONTROLLER, CONTROLLER_ADDRESS, "eth0")
        for switch in plan.switches:
            options = {"folder": folder, **switch_options}
            self.addSwitch(switch.name, cls=CLASSES[kind], **options)
            self._control(switch.name, switch.control_address, None, port1=CONTROL_PORT)
        for host in plan.hosts:
            # Mininet would give addresses by itself.
            self.addHost(host.name, ip=None)
            rack = next(s for s in plan.switches if s.rack == host.rack)
            self.addLink(
                host.name,
                rack.name,
                port1=0,
                port2=host.port,
                intfName1="eth0",
                addr1=host.mac,
                params1={"ip": f"{host.address}/24"},
            )
            self._control(host.name, host.control_address, "eth1", port1=1)
        for left, left_port, right, right_port in plan.trunks:
            self.addLink(left, right, port1=left_port, port2=right_port)

    def _control(self, node: str, address: str, interface: str | None, **options: Any) -> None:
        named = {"intfName1": interface} if interface else {}
        self.addLink(node, "b1", params1={"ip": f"{address}/24"}, **named, **options)
