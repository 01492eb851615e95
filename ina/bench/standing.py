"""What a benchmark's network has as long as it stands, and how it ends."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ina import netns
from ina.emulate import namespaces, remains
from ina.emulate.namespaces import namespace
from ina.emulate.processes import Logged


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
def standing(nodes: Sequence[str]) -> Iterator[Standing]:
    """Until the block ends; then no process runs in ``nodes``' namespaces, and they are gone.

    Raises MissingToolError (needs root, ip and tc), UnavailableError, DeadlineError.
    """
    namespaces.require_privileges()
    name = own_name()
    with tempfile.TemporaryDirectory(prefix="ina-bench-") as folder, remains.claimed(name):
        made = Standing(name, Path(folder))
        try:
            yield made
        finally:
            with netns.signals_later():  # half of a network must not stay
                for process in reversed(made.processes):
                    process.stop()
                namespaces.remove([namespace(name, node) for node in nodes])
