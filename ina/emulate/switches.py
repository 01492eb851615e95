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
from ina.emulate.topology import EmulatedLink, Topology, outages_of
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
        self._outages = outages_of(topology)

    @property
    def down(self) -> frozenset[str]:
        """Switches and links that are out of order."""
        return frozenset(self._outages.names)

    @property
    def parts(self) -> Sequence[str]:
        """What can fail: switches, and the links between them."""
        return self._outages.parts

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
        for outage in self._outages.only(names):
            self._progress(f"{outage.name} {'fails' if outage.is_down else 'is mended'}")
            if outage.ends is not None:
                self._each_cable(outage.ends, pull_out if outage.is_down else plug_in)
            elif outage.is_down:
                self._processes[outage.name].kill()
            else:
                self._start(outage.name)
        self._plans = [
            msgspec.structs.replace(plan, is_controlled=plan.name in self._topology.aggregators)
            for plan in plan_switches(self._topology, *self._program, self._outages.down)
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

    def _each_cable(
        self, ends: tuple[str, str], do: Callable[[Topology, EmulatedLink], None]
    ) -> None:
        for cable in self._topology.links:
            if {end.node for end in cable.ends} == set(ends):
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
