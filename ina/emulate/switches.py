"""The switches of a network: their processes, what they forward by, and which are out of order.

Where a switch or a link fails, the others forward around it as soon as new tables are written, as a
routing protocol of a real network would have them; hosts that are cut off stay so.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ina.emulate import nodes
from ina.emulate.errors import EmulationError
from ina.emulate.namespaces import namespace
from ina.emulate.processes import Logged, environment, last_line
from ina.emulate.programming import plan_switches
from ina.emulate.topology import EmulatedLink, Topology, link_name, without
from ina.emulate.wiring import NET, plug_in, pull_out
from ina.errors import DeadlineError
from ina.netns import within

PROGRAM_TIMEOUT_S = 240.0
"""A soft switch may have to compile the program, on a busy machine."""
_PROGRAM_POLL_S = 0.02


class Switches:
    """Of a network that is wired. :meth:`stop` ends them."""

    def __init__(
        self,
        topology: Topology,
        program: tuple[int, str],
        folder: Path,
        progress: Callable[[str], None],
    ) -> None:
        """``program``: values and mode, of those that sum. Reads the programs' files; raises
        :class:`TopologyError`: they cannot be used."""
        self._topology, self._program, self._folder = topology, program, folder
        self._progress = progress
        self._net = namespace(topology.name, NET)
        self._plans = plan_switches(topology, *program)
        self._processes: dict[str, Logged] = {}
        self.down: frozenset[str] = frozenset()
        """Switches and links that are out of order."""

    def start(self) -> None:
        """All of them, with their programs and tables. Raises :class:`EmulationError`,
        :class:`DeadlineError`."""
        for switch in self._topology.switches:
            self._start(switch.name)
        self._progress("setting the switches' programs and tables")
        self._write()

    def check(self) -> None:
        """Raises :class:`EmulationError` if one has ended that should not."""
        for name, process in self._processes.items():
            if name not in self.down:
                process.check()

    def set_down(self, names: frozenset[str]) -> None:
        """From now on just these switches and links are out of order, and the others know.

        Raises :class:`EmulationError`, :class:`DeadlineError`, :class:`NetnsError`.
        """
        before, self.down = self.down, names
        for name in sorted(names - before):
            self._progress(f"{name} fails")
            if name in self._processes:
                self._processes[name].kill()
            else:
                self._each_cable(name, pull_out)
        for name in sorted(before - names):
            self._progress(f"{name} is mended")
            if name in self._processes:
                self._start(name)
            else:
                self._each_cable(name, plug_in)
        remaining = without(self._topology, names)
        self._plans = [
            msgspec.structs.replace(plan, is_controlled=plan.name in remaining.aggregators)
            for plan in plan_switches(remaining, *self._program)
            if plan.forwarding and plan.name not in names
        ]
        self._write()

    def stop(self) -> None:
        """Ends all processes; idempotent."""
        for process in reversed(self._processes.values()):
            process.stop()

    def _start(self, name: str) -> None:
        (switch,) = (it for it in self._topology.switches if it.name == name)
        self._progress(f"starting switch {name} ({switch.kind})")
        command = nodes.switch_command(self._topology, switch)
        log = self._folder / f"{name}.log"
        self._processes[name] = Logged(f"switch {name}", self._net, command, log, environment())

    def _each_cable(self, link: str, do: Callable[[Topology, EmulatedLink], None]) -> None:
        for cable in self._topology.links:
            if link_name(*(end.node for end in cable.ends)) == link:
                do(self._topology, cable)

    def _write(self) -> None:
        log, plan_file = self._folder / "programming.log", self._folder / "switches.json"
        plan_file.write_bytes(msgspec.json.format(msgspec.json.encode(self._plans)))
        command = within(self._net, [sys.executable, "-m", "ina.emulate.program_switches"])
        with plan_file.open("rb") as source, log.open("wb") as sink:
            process = subprocess.Popen(
                command, stdin=source, stdout=sink, stderr=sink, env=environment(),
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + PROGRAM_TIMEOUT_S
        while process.poll() is None:
            self.check()
            if time.monotonic() >= deadline:
                raise DeadlineError(
                    f"the switches are not programmed after {PROGRAM_TIMEOUT_S:g} s"
                )
            time.sleep(_PROGRAM_POLL_S)
        if process.returncode:
            raise EmulationError(last_line(log))


def parts(topology: Topology) -> Sequence[str]:
    """What can fail: switches, and the links between them."""
    switches = [switch.name for switch in topology.switches]
    ends = [tuple(end.node for end in link.ends if end.port is not None) for link in topology.links]
    links = {link_name(*pair): None for pair in ends if len(pair) == 2}
    return [*switches, *links]
