"""What a benchmark's network has as long as it stands, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ina import netns
from ina.controller.config import make_config
from ina.emulate import namespaces, nodes, remains
from ina.emulate.namespaces import namespace
from ina.emulate.processes import Logged, environment
from ina.protocol.spec import UDP_PORT

READY_TIMEOUT_S = 180.0
"""A soft switch may have to compile the program, on a busy machine."""
P4RUNTIME_PORT = 9559


def own_name() -> str:
    """Of this process's network: ``ina emulate clean`` finds it by that."""
    return f"bench-{os.getpid()}"


@dataclass(frozen=True)
class Standing:
    """Where its files are, and who runs in it."""

    name: str
    folder: Path
    processes: list[Logged] = field(default_factory=list)
    """Appended as they start; they end in the opposite order."""

    def space(self, node: str) -> str:
        """The node's namespace."""
        return namespace(self.name, node)

    def start(self, what: str, node: str, *arguments: str) -> None:
        """Starts ``ina`` with these arguments at a node; ``what`` names it in errors."""
        command = [sys.executable, "-m", "ina", *arguments]
        log = self.folder / f"{what.replace(' ', '-')}.log"
        self.processes.append(Logged(what, self.space(node), command, log, environment()))

    def start_switch(self, what: str, node: str, address: str, *options: str) -> None:
        """A soft switch with a UDP port; its P4Runtime is at the same address."""
        port = f"--port=1=udp:{address}:{UDP_PORT}"
        at = f"--grpc-addr={address}:{P4RUNTIME_PORT}"
        self.start(what, node, "switch", port, at, *options)

    def start_controller(
        self, what: str, node: str, config: Mapping[str, Any], *options: str
    ) -> None:
        """When all others are ready; returns when it is, too.

        Raises EmulationError: one of them has ended; DeadlineError.
        """
        self._await_ready()
        file = self.folder / "controller.toml"
        file.write_text(nodes.controller_toml(dict(config)))
        self.start(what, node, "controller", "run", str(file), *options)
        self._await_ready()

    def _await_ready(self) -> None:
        for process in self.processes:
            process.await_line("ready: ", READY_TIMEOUT_S)

    def state(
        self, hosts: Sequence[remains.HostState], switches: Sequence[str], controller: str, net: str
    ) -> remains.State:
        """What others may know of it. ``switches``: soft ones. ``net``: the controller's space."""
        return remains.State(
            name=self.name,
            pid=os.getpid(),
            folder=str(self.folder),
            hosts=list(hosts),
            switches=dict.fromkeys(switches, "soft"),
            controller=controller,
            net=net,
        )


@contextlib.contextmanager
def standing(names: Sequence[str], config: Mapping[str, Any]) -> Iterator[Standing]:
    """Until the block ends; then no process runs in these nodes' namespaces, and they are gone.

    ``config``: the controller's, in which a mistake is told before anything is made. Raises
    ConfigError, MissingToolError (needs root, ip and tc), UnavailableError, DeadlineError.
    """
    namespaces.require_privileges()
    make_config(dict(config), "ina bench")
    name = own_name()
    with tempfile.TemporaryDirectory(prefix="ina-bench-") as folder, remains.claimed(name):
        made = Standing(name, Path(folder))
        try:
            yield made
        finally:
            with netns.signals_later():  # half of a network must not stay
                for process in reversed(made.processes):
                    process.stop()
                namespaces.remove([namespace(name, node) for node in names])
