"""The services of an episode: two leaves and a spine, in mode shared an aggregator behind it, a
controller and one on standby with the same store. Real processes, to be killed or stopped."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.worlds.processes.fabric_services import SPINE, FabricServices
from tests.worlds.processes.services import Service

AGGREGATOR = "agg"
CONTROLLER, STANDBY = "controller", "standby"
LEASE_S, LOSS_S = 1.5, 2.0
_AGGREGATOR_HOST = "127.0.9.9"


class Fleet(FabricServices):
    """One for many episodes: :meth:`mend` starts anew what one has ended."""

    def __init__(self, folder: Path, mode: str) -> None:
        super().__init__(folder, lease_s=LEASE_S, loss_s=LOSS_S)
        self.mode = mode
        self._aggregator = Service(AGGREGATOR, folder)
        self._standby = Service(STANDBY, folder)
        self._aggregator_grpc, self._aggregator_port = "127.0.0.1:0", "0"
        self._standby_addr = "127.0.0.1:0"
        self._gone: set[str] = set()
        self._stopped: set[str] = set()

    @property
    def environ(self) -> dict[str, str]:
        """The variables of workers that use these controllers."""
        both = f"{self.controller_addr},{self._standby_addr}"
        return {"INA_CONTROLLER": both, "INA_MODE": self.mode}

    def start(self, name: str) -> None:
        """Starts a service where it was before."""
        if name == CONTROLLER and self.mode == "shared" and self._aggregator_port == "0":
            self.start(AGGREGATOR)
        if name == AGGREGATOR:
            ready = self._aggregator.start(
                *("aggregator", "--listen", f"{_AGGREGATOR_HOST}:{self._aggregator_port}"),
                *("--grpc-addr", self._aggregator_grpc),
            )
            self._aggregator_grpc = ready["grpc_addr"]
            self._aggregator_port = ready["ports"]["1"].rpartition(":")[2]
        elif name == STANDBY:
            file = self._folder / "standby.toml"
            text = self._config().replace("election_id = 2", "election_id = 1")
            file.write_text(text.replace(self.controller_addr, self._standby_addr))
            self._standby_addr = self._standby.start("controller", "run", str(file))["controller"]
        else:
            super().start(name)
            if name == CONTROLLER and self._standby_addr.endswith(":0"):
                self.start(STANDBY)

    def stop(self, name: str) -> None:
        """SIGSTOP; :meth:`mend` lets it go on."""
        self._service(name).send(signal.SIGSTOP)
        self._stopped.add(name)

    def kill(self, name: str) -> None:
        """``kill -9``; :meth:`mend` starts it again."""
        self._service(name).kill()
        self._gone.add(name)

    def mend(self) -> None:
        """All is as it was."""
        for name in self._stopped:
            self._service(name).send(signal.SIGCONT)
        for name in self._gone:
            self.start(name)
        self._stopped.clear()
        self._gone.clear()

    def _service(self, name: str) -> Service:
        mine = {AGGREGATOR: self._aggregator, STANDBY: self._standby}
        return mine[name] if name in mine else super()._service(name)

    def _kill_all(self) -> None:
        for name in (STANDBY, AGGREGATOR):
            self._service(name).kill()
        super()._kill_all()

    def _config(self) -> str:
        text = super()._config()
        more = "election_id = 2\n"
        if self.mode == "shared":
            more += 'mode = "shared"\nshared_slots = 32\n'
        text = text.replace("[[switch]]\n", f"[[switch]]\n{more}")
        if self.mode == "shared":
            text += (
                f'[[aggregator]]\nname = "{AGGREGATOR}"\nelection_id = 2\n'
                f'grpc_addr = "{self._aggregator_grpc}"\ndata_host = "{_AGGREGATOR_HOST}"\n'
                f'data_udp_port = {self._aggregator_port}\nswitch = "{SPINE}"\nloss_s = {LOSS_S}\n'
            )
        return text
