"""A whole network, from nothing to ready, and back to nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ina import netns
from ina.controller.config import Config
from ina.emulate import namespaces, nodes, remains, wiring
from ina.emulate.capture import capture_command
from ina.emulate.errors import EmulationError
from ina.emulate.processes import Logged, environment
from ina.emulate.switches import Switches
from ina.emulate.topology import Topology, check_capture
from ina.errors import DeadlineError
from ina.netns import within
from ina.p4.names import DEFAULT_MODE

Progress = Callable[[str], None]
CONTROLLER_TIMEOUT_S = 120.0
COMMAND_TIMEOUT_S = 60.0
_POLL_S = 0.2


@dataclass(frozen=True)
class Emulation:
    """A network that is up."""

    state: remains.State
    switches: Switches
    processes: tuple[Logged, ...]
    has_fabric: bool
    """Whether the controller knows the links between switches."""

    def check(self) -> None:
        """Lets fail, or mends, what somebody has asked for since the last look.

        Raises :class:`EmulationError` if a switch or the controller has ended.
        """
        asked = remains.asked_down(self.state.name)
        if asked != self.switches.down:
            changed = asked ^ self.switches.down
            self.switches.set_down(asked)
            for name in sorted(changed - self.state.switches.keys()) if self.has_fabric else ():
                self._tell_controller(name, "down" if name in asked else "up")
            remains.publish(msgspec.structs.replace(self.state, down=sorted(asked)))
        self.switches.check()
        for process in self.processes:
            process.check()

    def _tell_controller(self, link: str, state: str) -> None:
        """What the ports of a real switch would tell. That a switch is gone it sees by itself."""
        command = [sys.executable, "-m", "ina", "fabric", state, link]
        try:
            done = subprocess.run(
                within(self.state.net, [*command, "--controller", self.state.controller]),
                capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False,
                env=environment(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DeadlineError(
                f"the controller: no answer about {link} in {COMMAND_TIMEOUT_S:g} s"
            ) from None
        if done.returncode:
            raise EmulationError(f"the controller: {link}: {done.stderr.strip()}")

    def hold(self) -> None:
        """Returns never; raises :class:`EmulationError` when a part ends. Signals end it."""
        while True:
            self.check()
            time.sleep(_POLL_S)


@contextlib.contextmanager
def emulate(
    topology: Topology, folder: Path, progress: Progress, *, pcap: bool = False
) -> Iterator[Emulation]:
    """The network of ``topology``, with logs (and pcap files) in ``folder``, until the block ends.

    However it ends, its namespaces, interfaces and processes are gone then. Raises
    :class:`EmulationError`, :class:`UnavailableError` (one of this name runs),
    :class:`MissingToolError`, :class:`TopologyError`, :class:`DeadlineError`.
    """
    if pcap:
        check_capture(topology)
    namespaces.require_privileges()
    nodes.require_switches(topology)
    config = nodes.controller_config(topology) if topology.aggregators else None
    program = (config.switch.values, config.switch.mode) if config else (0, DEFAULT_MODE)
    switches = Switches(topology, program, folder, progress)
    spaces = wiring.namespaces_of(topology)
    folder.mkdir(parents=True, exist_ok=True)
    with remains.claimed(topology.name):
        left = namespaces.networks().get(topology.name, [])
        if left:
            progress(f"removing what a killed emulation {topology.name} left")
            namespaces.remove(left)
        processes: list[Logged] = []
        try:
            progress(f"namespaces and links: {len(spaces)} and {len(topology.links)}")
            wiring.build(topology)
            if pcap:
                processes.append(_start_capture(topology, folder))
            switches.start()
            if config is not None:
                progress("starting the controller")
                processes.append(_start_controller(topology, config, folder))
            _run_commands(topology, progress)
            state = _state(topology, switches.parts, folder)
            remains.publish(state)
            yield Emulation(state, switches, tuple(processes), len(topology.aggregators) > 1)
        finally:
            with _undisturbed():
                progress("removing the network")
                for process in reversed(processes):
                    process.stop()
                switches.stop()
                namespaces.remove(spaces)


def _start_capture(topology: Topology, folder: Path) -> Logged:
    interfaces = [
        f"{switch.name}-p{port}"
        for switch in topology.switches
        for port in topology.ports(switch.name)
    ]
    (folder / "pcap").mkdir(exist_ok=True)
    process = Logged(
        "the packet capture",
        namespaces.namespace(topology.name, wiring.NET),
        capture_command(folder / "pcap", interfaces),
        folder / "capture.log",
        environment(),
    )
    process.await_line("ready", CONTROLLER_TIMEOUT_S)
    return process


def _start_controller(topology: Topology, config: Config, folder: Path) -> Logged:
    file = folder / "controller.toml"
    file.write_text(nodes.controller_toml(config.document()))
    process = Logged(
        "the controller",
        namespaces.namespace(topology.name, wiring.NET),
        [sys.executable, "-m", "ina", "controller", "run", str(file)],
        folder / "controller.log",
        environment(),
    )
    process.await_line("ready: ", CONTROLLER_TIMEOUT_S)
    return process


def _run_commands(topology: Topology, progress: Progress) -> None:
    for host in topology.hosts:
        space = namespaces.namespace(topology.name, host.name)
        for text in host.commands:
            try:
                done = subprocess.run(
                    within(space, ["sh", "-c", text]), capture_output=True, text=True,
                    timeout=COMMAND_TIMEOUT_S, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise DeadlineError(
                    f"host {host.name}: {text}: no end in {COMMAND_TIMEOUT_S:g} s"
                ) from None
            if done.returncode:
                said = done.stderr.strip().partition("\n")[0]
                what = f"host {host.name}: {text}: exit code {done.returncode}: {said}"
                if not host.commands_may_fail:
                    raise EmulationError(what)
                progress(f"warning: {what}")


def _state(topology: Topology, parts: Sequence[str], folder: Path) -> remains.State:
    return remains.State(
        name=topology.name,
        pid=os.getpid(),
        folder=str(folder.resolve()),
        hosts=[
            remains.HostState(
                host.name,
                str(host.address.ip),
                namespaces.namespace(topology.name, host.name),
                host.ranks,
            )
            for host in topology.hosts
        ],
        switches={switch.name: switch.kind for switch in topology.switches},
        parts=parts,
        controller=nodes.CONTROLLER if topology.aggregators else "",
        net=namespaces.namespace(topology.name, wiring.NET),
    )


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not leave half of a network behind."""
    stop = netns.STOP_SIGNALS
    former = {number: signal.signal(number, signal.SIG_IGN) for number in stop}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
