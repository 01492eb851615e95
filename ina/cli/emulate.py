"""``ina emulate``: a network of switches, links and hosts on this machine; jobs in it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Group
from typer.core import TyperGroup

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, console, emit, table
from ina.emulate import job, remains
from ina.emulate.emulation import Emulation, emulate
from ina.emulate.load import load_topology
from ina.emulate.topology import NETWORK_NAME, Topology, with_kind, with_placement
from ina.errors import InvalidInputError

_DEFAULT = "up"
_BEHIND = "ina.emulate.command"


class _UpByDefault(TyperGroup):
    """``ina emulate TOPOLOGY`` means ``ina emulate up TOPOLOGY``.

    What is behind ``--`` is somebody else's command line: it is kept apart, as it stands.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set the command line behind ``--`` aside and supply the command's name."""
        if "--" in args:
            place = args.index("--")
            args, ctx.meta[_BEHIND] = args[:place], args[place + 1 :]
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


class Kind(str, Enum):
    """What the switches are."""

    soft = "soft"
    bmv2 = "bmv2"
    xdp = "xdp"


app = typer.Typer(
    cls=_UpByDefault,
    help="Emulate a network on this machine: ina emulate TOPOLOGY. Needs root.",
    no_args_is_help=True,
)
TopologyArgument = Annotated[
    Path, typer.Argument(metavar="TOPOLOGY", help="TOML file, or the p4lang tutorials' JSON.")
]
SwitchOption = Annotated[
    Kind | None, typer.Option("--switch", help="What all switches are, before what the file says.")
]
NameOption = Annotated[
    str, typer.Option("--name", help="Of the network. Default: the file's name key, or its stem.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for logs and pcaps [out/emulate/NAME].")
]
PcapOption = Annotated[bool, typer.Option("--pcap", help="Capture every switch port in pcap/.")]
InaOption = Annotated[
    bool, typer.Option("--ina", help="Run ina's programs where the file names others, too.")
]
PlacementOption = Annotated[
    str, typer.Option(help="The policy that finds jobs' trees, before what the file says.")
]
PartsArgument = Annotated[
    list[str], typer.Argument(metavar="PART...", help="Switches, or links as leaf1-spine1.")
]


@app.callback()
def _emulate() -> None:
    """Emulate a network on this machine: ina emulate TOPOLOGY. Needs root."""


@app.command()
def up(
    topology: TopologyArgument,
    switch: SwitchOption = None,
    name: NameOption = "",
    out: OutOption = None,
    pcap: PcapOption = False,
    ina: InaOption = False,
    placement: PlacementOption = "",
    json: JsonOption = False,
) -> None:
    """Bring a network up, until Ctrl-C or SIGTERM takes it down."""
    network = with_placement(_load(topology, switch, name, ina), placement)
    with _network(network, out, pcap) as emulation:
        emit(emulation.state, json, _ready(network, emulation))
        emulation.hold()


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Of ``ina emulate run``."""

    ctx: typer.Context
    topology: Annotated[
        Path | None,
        typer.Argument(metavar="[TOPOLOGY] -- COMMAND...", help="The network; what runs in it."),
    ] = None
    hosts: Annotated[
        str, typer.Option(help="Only these, separated by commas; rank 0 first. [all]")
    ] = ""
    timeout_s: Annotated[float, typer.Option(min=0.001, help="Deadline of the command.")] = 3600.0
    switch: SwitchOption = None
    name: NameOption = ""
    out: OutOption = None
    pcap: PcapOption = False
    ina: InaOption = False
    placement: PlacementOption = ""
    json: JsonOption = False


@app.command()
@command(RunOptions)
def run(asked: RunOptions) -> None:
    """Run a command on every host at once: one rank a host, or as many as the file says.

    With TOPOLOGY, in a network that is there for this command alone; without, in the one that runs.
    Each rank has MASTER_ADDR, RANK, WORLD_SIZE and the like; torchrun reads its own from PET_*.
    """
    command = _command(asked.ctx)
    if asked.topology is None:
        if asked.switch or asked.out or asked.pcap or asked.ina or asked.placement:
            raise InvalidInputError(
                "--switch, --out, --pcap, --ina and --placement are for a network of its own: name"
                " a TOPOLOGY"
            )
        _run_in(remains.running(asked.name), command, asked.hosts, asked.timeout_s, asked.json)
        return
    network = with_placement(
        _load(asked.topology, asked.switch, asked.name, asked.ina), asked.placement
    )
    with _network(network, asked.out, asked.pcap) as emulation:
        _run_in(emulation.state, command, asked.hosts, asked.timeout_s, asked.json, emulation)


@app.command("exec")
def exec_(
    ctx: typer.Context,
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE -- COMMAND...", help="A host; or net: the switches and the controller."
        ),
    ],
    name: NameOption = "",
) -> None:
    """Run a command on one host of a running network, or beside its controller (net)."""
    job.exec_on(remains.running(name), node, _command(ctx))


@app.command()
def fail(parts: PartsArgument, name: NameOption = "", json: JsonOption = False) -> None:
    """Let switches and links of a running network fail; the others forward around them.

    A switch is killed, a link's cables are pulled out.
    """
    _put_down(parts, name, json, is_down=True)


@app.command()
def mend(parts: PartsArgument, name: NameOption = "", json: JsonOption = False) -> None:
    """Mend what ina emulate fail has broken: a switch starts anew, with empty tables."""
    _put_down(parts, name, json, is_down=False)


def _put_down(parts: list[str], name: str, json: bool, *, is_down: bool) -> None:
    state = remains.put_down(remains.running(name), parts, is_down=is_down)
    emit(state, json, f"{state.name}: out of order: {', '.join(state.down) or 'nothing'}")


@app.command()
def check(
    topology: TopologyArgument,
    switch: SwitchOption = None,
    ina: InaOption = False,
    json: JsonOption = False,
) -> None:
    """Read a topology; exit with 2 and say where if it is wrong. Needs no root."""
    from ina.emulate.nodes import controller_config
    from ina.emulate.programming import plan_switches

    network = _load(topology, switch, "", ina)
    config = controller_config(network) if network.aggregators else None
    plan_switches(network, *((config.switch.values, config.switch.mode) if config else (0,)))
    emit(network, json, _view(network))


@app.command()
def clean(
    name: Annotated[str, typer.Argument(help="Only this network. [all]")] = "",
    json: JsonOption = False,
) -> None:
    """Remove what emulations left that were killed: processes and namespaces."""
    from ina.emulate.namespaces import require_privileges

    require_privileges()
    rows = remains.clean(name)
    emit(rows, json, "\n".join(map(_clean_line, rows)) or "nothing is left")


def _clean_line(row: dict[str, Any]) -> str:
    if "running" in row:
        return f"{row['name']}: is running (pid {row['running']}), left alone"
    return f"{row['name']}: removed {row['namespaces']} namespaces, {row['processes']} processes"


def _load(path: Path, switch: Kind | None, name: str, ignore_runtime: bool) -> Topology:
    topology = load_topology(path, ignore_runtime=ignore_runtime)
    if name:
        if not NETWORK_NAME.fullmatch(name):
            raise InvalidInputError(
                f"--name {name!r}: want up to 24 lower-case letters, digits, - and _"
            )
        topology = replace(topology, name=name)
    return with_kind(topology, switch.value if switch else None)


def _command(ctx: typer.Context) -> list[str]:
    command: list[str] = ctx.meta.get(_BEHIND, [])
    if not command:
        raise InvalidInputError("no command: put -- and a command at the end of the line")
    return command


def _run_in(
    state: remains.State,
    command: list[str],
    hosts: str,
    timeout_s: float,
    json: bool,
    emulation: Emulation | None = None,
) -> None:
    chosen = job.choose_hosts(state, [part for part in hosts.split(",") if part])
    result = job.run_job(
        state,
        chosen,
        command,
        timeout_s=timeout_s,
        on_text=(sys.stderr if json else sys.stdout).write,
        check=emulation.check if emulation else lambda: None,
    )
    result = {"name": state.name, "folder": state.folder, "switches": state.switches, **result}
    emit(result, json, f"done on {len(chosen)} hosts in {result['seconds']:.1f} s; {state.folder}")


@contextmanager
def _network(topology: Topology, out: Path | None, pcap: bool) -> Iterator[Emulation]:
    """The network, with a line of progress a step on stderr."""

    def hang_up(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGHUP, hang_up)  # the terminal is gone: unwind as for SIGTERM
    started = time.monotonic()
    screen = console(stderr=True)

    def say(step: str) -> None:
        screen.print(f"{time.monotonic() - started:6.1f} s  {step}")

    folder = out if out is not None else Path("out/emulate") / topology.name
    try:
        with emulate(topology, folder, say, pcap=pcap) as emulation:
            yield emulation
    finally:
        signal.signal(signal.SIGHUP, before)


def _ready(topology: Topology, emulation: Emulation) -> str:
    state = emulation.state
    controller = f", controller {state.controller}" if state.controller else ""
    return (
        f"ready: {len(state.hosts)} hosts, {len(state.switches)} switches"
        f"{controller}; logs in {state.folder}; Ctrl-C ends it"
    )


def _view(topology: Topology) -> Group:
    hosts = table(["host", "address", "mac"], [[h.name, h.address, h.mac] for h in topology.hosts])
    switches = table(
        ["switch", "kind", "program", "ports"],
        [
            [
                switch.name,
                switch.kind,
                switch.runtime_json or _part(topology, switch.name),
                ", ".join(f"{p}: {end}" for p, (_, end) in topology.ports(switch.name).items()),
            ]
            for switch in topology.switches
        ],
    )
    return Group(hosts, switches)


def _part(topology: Topology, switch: str) -> str:
    address = topology.aggregators.get(switch)
    return "forwards" if address is None else f"sums at {address}"
