"""``ina switch``: a soft switch until it is told to stop; what a controller's switch has."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from finsy.proto import p4r

from ina.cli.common.given import is_given
from ina.cli.common.options import command
from ina.cli.common.output import JsonOption
from ina.cli.common.rpc_client import ControllerOption, job_names
from ina.cli.log_options import log_as_a_service
from ina.cli.switch import show as switch_show
from ina.cli.switch.detach import detach_pin
from ina.cli.switch.options import (
    DeviceIdOption,
    LossSeedOption,
    MetricsOption,
    ReadyJsonOption,
    TlsCaOption,
    TlsCertOption,
    TlsKeyOption,
)
from ina.cli.switch.serve import serve_until_told
from ina.cli.switch.shell import open_shell
from ina.controller.config import DEFAULT_LISTEN
from ina.errors import InvalidInputError, UnavailableError
from ina.p4.builds import listed
from ina.p4.origin import warn_if_changed
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET
from ina.rpc.tls import TlsFiles
from ina.switch.p4runtime.config import config_from_files
from ina.switch.ports import parse_port
from ina.switch.server import SoftSwitch
from ina.switch.target import Target
from ina.switch.targets import default_target, xdp_target
from ina.switch.xdp.links import XdpMode
from ina.switch.xdp.pin import Pin

app = typer.Typer(help="Run the soft switch; show what a controller's switch has.")


class Device(str, Enum):
    """What runs programs."""

    soft = "soft"
    xdp = "xdp"


@dataclass(frozen=True, kw_only=True)
class SwitchOptions:
    """Of ``ina switch``."""

    ctx: typer.Context
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            metavar="SPEC",
            help="NUMBER=udp:ADDRESS:PORT, NUMBER=rocev2:ADDRESS:PORT (for programs of mode roce), "
            "NUMBER=shm:@NAME, NUMBER=afpacket:INTERFACE "
            "(NUMBER=if:INTERFACE is the same) or NUMBER=pcap:IN,OUT; repeatable. "
            "Default: 1=udp:127.0.0.1:17760.",
        ),
    ] = None
    device: Annotated[
        Device,
        typer.Option(
            help="What runs the program: soft, this process; xdp, this machine's kernel, as root, "
            "whose ports are interfaces."
        ),
    ] = Device.soft
    xdp_mode: Annotated[
        XdpMode,
        typer.Option(
            help="Where interfaces of device xdp run the program: native, in their driver; "
            "generic, behind it, with any driver, and slower."
        ),
    ] = XdpMode.native
    pin: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of device xdp: programs, tables and sums stay in the kernel when this process "
            "ends; the next one with this name goes on with them.",
        ),
    ] = ""
    grpc_addr: Annotated[
        str, typer.Option(help="Where to serve P4Runtime; port 0 takes a free one.")
    ] = "127.0.0.1:9559"
    device_id: DeviceIdOption = 1
    cpu_port: Annotated[int, typer.Option(help="Port of packet-in and packet-out.")] = 510
    loss_rate: Annotated[
        float, typer.Option(help="Probability that a port drops a packet, each way.")
    ] = 0.0
    loss_seed: LossSeedOption = 0
    port_loss: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER=RATE", help="Another loss rate for one port; repeatable."),
    ] = None
    delay_us: Annotated[
        int, typer.Option(help="Microseconds that each packet is kept before it leaves.")
    ] = 0
    p4info: Annotated[
        Path | None, typer.Option(help="P4Info (text) of a program to start with.")
    ] = None
    program: Annotated[Path | None, typer.Option(help="BMv2 JSON of a program to start with.")] = (
        None
    )
    tls_cert: TlsCertOption = ""
    tls_key: TlsKeyOption = ""
    tls_ca: TlsCaOption = ""
    metrics: MetricsOption = ""
    json: ReadyJsonOption = False


@app.callback(invoke_without_command=True)
@command(SwitchOptions)
def switch(asked: SwitchOptions) -> None:
    """Run the soft switch, a P4Runtime device in user space, until Ctrl-C or SIGTERM.

    With a command behind it, these options have no place: they are for running a switch.
    """
    if asked.ctx.invoked_subcommand is not None:
        _refuse_options(asked.ctx)
        return
    log_as_a_service()
    if (asked.p4info is None) != (asked.program is None):
        raise InvalidInputError("--p4info and --program go together")
    if asked.program:
        warn_if_changed(asked.program)
    config = (
        config_from_files(asked.p4info, asked.program) if asked.p4info and asked.program else None
    )
    with ExitStack() as stack:
        target = _target(asked, stack)
        _run(asked, target, config)


def _run(asked: SwitchOptions, target: Target, config: p4r.ForwardingPipelineConfig | None) -> None:
    soft_switch = SoftSwitch(
        [parse_port(spec) for spec in asked.port or ["1=udp:127.0.0.1:17760"]],
        grpc_addr=asked.grpc_addr,
        device_id=asked.device_id,
        cpu_port=asked.cpu_port,
        loss_rate=asked.loss_rate,
        loss_seed=asked.loss_seed,
        port_loss=dict(map(_parse_loss, asked.port_loss or [])),
        delay_us=asked.delay_us,
        target=target,
        tls=TlsFiles(asked.tls_cert, asked.tls_key, asked.tls_ca, "--tls-"),
    )
    serve_until_told(
        soft_switch,
        asked.device_id,
        config=config,
        metrics=asked.metrics,
        json=asked.json,
        xdp_mode=asked.xdp_mode if asked.device is Device.xdp else None,
        pin=asked.pin,
    )


@app.command()
def show(
    job: Annotated[
        str, typer.Option(help="Only what belongs to this job.", autocompletion=job_names)
    ] = "",
    name: switch_show.AnySwitchName = "",
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Show what the switch has, by job, read back from it: entries, groups, counters."""
    switch_show.show_switch(controller, name, job, json)


@app.command()
def detach(
    name: Annotated[str, typer.Argument(help="What --pin named.")],
    json: JsonOption = False,
) -> None:
    """Take a switch of --device xdp that was pinned, and has no process, out of the kernel."""
    detach_pin(name, json)


@app.command()
def remove_foreign(
    name: switch_show.SwitchName = "",
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Remove the entries that `ina switch show` reports as foreign."""
    switch_show.remove_foreign(controller, name, json)


def _target(asked: SwitchOptions, stack: ExitStack) -> Target:
    """``stack``: what it holds. Raises UnavailableError: this machine has none of that kind."""
    if asked.device is Device.soft:
        for name in ("xdp_mode", "pin"):
            if is_given(asked.ctx, name):
                raise InvalidInputError(f"--{name.replace('_', '-')} belongs to --device xdp")
        return default_target()
    if why := xdp_target().trouble():
        raise UnavailableError(f"device xdp {why}")
    pin = stack.enter_context(Pin(asked.pin, asked.xdp_mode)) if asked.pin else None
    return xdp_target(at_ports=True, mode=asked.xdp_mode, pin=pin)


def _parse_loss(text: str) -> tuple[int, float]:
    number, equals, rate = text.partition("=")
    try:
        if equals and number.isdecimal():
            return int(number), float(rate)
    except ValueError:
        pass
    raise InvalidInputError(f"--port-loss {text!r}: expected NUMBER=RATE, as 1=0.01")


@app.command()
def shell(
    address: Annotated[
        str, typer.Option("--switch", metavar="HOST:PORT", help="The switch's P4Runtime address.")
    ] = "127.0.0.1:9559",
    device_id: DeviceIdOption = 1,
    values: Annotated[
        int,
        typer.Option(help=f"Which build a switch without a program gets: {listed('or')}."),
    ] = DEFAULT_VALUES_PER_PACKET,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Be primary even where a controller is.")
    ] = False,
) -> None:
    """Open p4runtime-shell on any P4Runtime switch, with the P4Info of the program it runs.

    Beside a controller the shell only reads. Commands may come from a pipe. The first use installs
    p4runtime-shell in an environment of its own under ~/.cache/ina.
    """
    open_shell(address, device_id, values, take_over)


def _refuse_options(ctx: typer.Context) -> None:
    for name in ctx.params:
        if is_given(ctx, name):
            raise InvalidInputError(
                f"--{name.replace('_', '-')} belongs behind the command {ctx.invoked_subcommand},"
                " or to running a switch"
            )
