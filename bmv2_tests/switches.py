"""Mininet's switch classes for P4: BMv2, and the soft switch on AF_PACKET ports in its place.

Port n of the P4 program is the node's interface ``NAME-ethN``; port 0 is the way to the controller.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bmv2_tests import debian
from bmv2_tests.process import PYTHON, NodeProcess

debian.skip_module_without_mininet()

from mininet.node import Switch  # noqa: E402

from ina.p4.names import CPU_PORT  # noqa: E402

CONTROL_PORT = 0
GRPC_PORT = 9559
DEVICE_ID = 1


OFFLOADS = ("tx", "rx", "tso", "gso", "gro", "lro")


def disable_offloads(node: Any, interface: str) -> None:
    """Frames as they are on a wire: cut to size, with their checksums."""
    for name in OFFLOADS:  # one at a time: a kernel may refuse some that are off for good
        node.cmd(f"ethtool -K {interface} {name} off")


class P4Switch(Switch):  # type: ignore[misc]
    """A switch with a P4Runtime server on its control interface. Starts without a program."""

    offloads = True
    """Whether it can carry frames that hosts leave for their network card to finish."""

    def __init__(self, name: str, *, folder: Path, **params: Any) -> None:
        """``folder``: where its log goes."""
        self.folder = folder
        self.process: NodeProcess | None = None
        super().__init__(name, **{**params, "inNamespace": True})
        self.controlIntf = None  # Mininet's own control network is not used

    @property
    def grpc_addr(self) -> str:
        """Where P4Runtime is served, for whoever is on the control network."""
        return f"{self.IP(self.intfs[CONTROL_PORT])}:{GRPC_PORT}"

    def start(self, controllers: list[Any]) -> None:
        """Starts the program; `controllers` are OpenFlow's and none of ours."""
        del controllers
        ports = {n: str(i) for n, i in self.intfs.items() if n != CONTROL_PORT}
        log = self.folder / f"{self.name}.log"
        self.process = NodeProcess(self, self.command(ports), log)

    def restart(self) -> None:
        """``kill -9``, and a start without program and entries, as of a power failure."""
        assert self.process is not None
        self.process.kill()
        self.start([])

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Ends the program, then the interfaces."""
        if self.process is not None:
            self.process.kill()
        super().stop(deleteIntfs)

    def command(self, ports: dict[int, str]) -> list[str]:
        """The program and its arguments, for interfaces by port number."""
        raise NotImplementedError


class SoftSwitchNode(P4Switch):
    """``ina switch``."""

    def __init__(self, name: str, *, loss_rate: float = 0.0, loss_seed: int = 1, **params: Any):
        """``loss_rate``: how many of the packets its ports drop, each way."""
        self.loss = ("--loss-rate", str(loss_rate), "--loss-seed", str(loss_seed))
        super().__init__(name, **params)

    def command(self, ports: dict[int, str]) -> list[str]:
        specs = [f"--port={number}=afpacket:{name}" for number, name in ports.items()]
        where = ("--grpc-addr", self.grpc_addr, "--device-id", str(DEVICE_ID))
        return [*PYTHON, "ina", "switch", *specs, *where, *self.loss]


class Bmv2Switch(P4Switch):
    """``simple_switch_grpc``."""

    offloads = False  # it forwards what libpcap shows it: checksums must be complete

    def start(self, controllers: list[Any]) -> None:
        """Starts the program, on interfaces that leave libpcap room.

        For an interface with offloads libpcap expects frames of 256 KiB, of which its ring of 2 MiB
        has room for 8: with more under way, most are lost before BMv2 sees them.
        """
        for interface in self.intfNames():
            disable_offloads(self, interface)
        super().start(controllers)

    def command(self, ports: dict[int, str]) -> list[str]:
        specs = [part for number, name in ports.items() for part in ("-i", f"{number}@{name}")]
        target = ("--grpc-server-addr", self.grpc_addr, "--cpu-port", str(CPU_PORT))
        # Thrift's port, 9090, is this namespace's own.
        # Its default level formats a line a table and action, even where none is written.
        what = ("--no-p4", "--device-id", str(DEVICE_ID), "--log-level", "error")
        return [debian.BMV2, *what, *specs, "--", *target]


class ControlBridge(Switch):  # type: ignore[misc]
    """A Linux bridge in a namespace of its own: the network of controllers, as out of band."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": True})
        self.controlIntf = None

    def start(self, controllers: list[Any]) -> None:
        """Joins all interfaces."""
        del controllers
        said = self.cmd("ip link add name br0 type bridge && ip link set dev br0 up")
        for interface in self.intfNames():
            said += self.cmd(f"ip link set dev {interface} master br0 up")
        if said:
            raise RuntimeError(f"{self.name}: {said}")


CLASSES: dict[str, type[P4Switch]] = {"soft": SoftSwitchNode, "bmv2": Bmv2Switch}
