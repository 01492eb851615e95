"""Two leaves and a spine, real ``ina switch`` processes on addresses of 127.0.0.0/8, and their
controller.

Every link and host is behind the one socket of its switch, so neither root nor namespaces are
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.worlds.processes.services import Service

LEAVES, SPINE = ("leaf1", "leaf2"), "spine"
HOSTS = ("127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2")
"""Of ranks 0 to 3: two behind each leaf."""


def leaf_of(rank: int) -> str:
    """The top of its rack."""
    return LEAVES[rank // 2]


@dataclass
class _Switch:
    service: Service
    data_host: str
    data_port: str = "0"
    grpc_addr: str = "127.0.0.1:0"


class FabricServices:
    """As :class:`~tests.worlds.processes.services.Services`, of three switches."""

    def __init__(
        self, folder: Path, *, lease_s: float, loss_s: float, spines: Sequence[str] = (SPINE,)
    ) -> None:
        """``spines``: each has links to both leaves; the first is used."""
        self._spines = spines
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._lease_s, self._loss_s = folder, lease_s, loss_s
        self.controller = Service("controller", folder)
        self.controller_addr = "127.0.0.1:0"
        self._switches = {
            name: _Switch(Service(name, folder), f"127.0.9.{number}")
            for number, name in enumerate((*LEAVES, *spines), 1)
        }

    def __enter__(self) -> FabricServices:
        try:
            for name in self._switches:
                self.start(name)
            self.start("controller")
        except BaseException:
            self._kill_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill_all()

    @property
    def environ(self) -> dict[str, str]:
        """The variables of workers that use this controller."""
        return {"INA_CONTROLLER": self.controller_addr}

    def log(self, name: str) -> str:
        """What the controller or a switch has said."""
        return self._service(name).log.read_text()

    def kill(self, name: str) -> None:
        """``kill -9`` of the controller or of a switch."""
        self._service(name).kill()

    def start(self, name: str) -> None:
        """Starts the controller or a switch, where it was before."""
        if name == "controller":
            file = self._folder / "controller.toml"
            file.write_text(self._config())
            ready = self.controller.start("controller", "run", str(file))
            self.controller_addr = ready["controller"]
            return
        switch = self._switches[name]
        ready = switch.service.start(
            *("switch", "--port", f"1=udp:{switch.data_host}:{switch.data_port}"),
            *("--grpc-addr", switch.grpc_addr),
        )
        switch.grpc_addr = ready["grpc_addr"]
        switch.data_port = ready["ports"]["1"].rpartition(":")[2]

    def data_addr(self, name: str) -> str:
        """Where a switch takes contributions."""
        return f"{self._switches[name].data_host}:{self._switches[name].data_port}"

    def _service(self, name: str) -> Service:
        return self.controller if name == "controller" else self._switches[name].service

    def _kill_all(self) -> None:
        for name in ("controller", *self._switches):
            self.kill(name)

    def _config(self) -> str:
        parts = [
            f'listen = "{self.controller_addr}"',
            f'[store]\npath = "{self._folder / "controller.db"}"',
            f"[jobs]\nslots = 64\nlease_s = {self._lease_s}",
        ]
        parts += [
            f'[[switch]]\nname = "{name}"\ngrpc_addr = "{switch.grpc_addr}"\nvalues = 64\n'
            f'data_host = "{switch.data_host}"\ndata_udp_port = {switch.data_port}\n'
            f"loss_s = {self._loss_s}"
            for name, switch in self._switches.items()
        ]
        parts += [
            f'[[link]]\nswitches = ["{leaf}", "{spine}"]'
            for spine in self._spines
            for leaf in LEAVES
        ]
        parts += [
            f'[[host]]\naddress = "{address}"\nswitch = "{leaf_of(rank)}"'
            for rank, address in enumerate(HOSTS)
        ]
        return "\n".join(parts) + "\n"
