"""``ina controller``: run a controller, check its configuration, say how it is."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ina import modes
from ina.cli.common.given import is_given
from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, LineOrParts, emit, lines_or_parts
from ina.cli.common.rpc_client import (
    ControllerOption,
    RequestRefusedError,
    addresses,
    controller_at,
    describe,
    plain,
)
from ina.cli.controller.reload import Reloader
from ina.cli.log_options import log_as_a_service
from ina.cli.switch.show import AnySwitchName, show_switch
from ina.controller.app import ControllerApp
from ina.controller.config import DEFAULT_LISTEN, Config, TlsConfig, load_config, make_config
from ina.controller.config.store_url import shown
from ina.controller.service.access import check_files
from ina.controller.store.check import check_store
from ina.controller.switches.southbound import check_program
from ina.errors import InvalidInputError, UnavailableError
from ina.p4.builds import listed
from ina.units import time_text

app = typer.Typer(help="Run and inspect the controller.", no_args_is_help=True)


@app.callback()
def _controller() -> None:
    """Run and inspect the controller."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Of ``ina controller run``."""

    ctx: typer.Context
    config: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="TOML file; without it, defaults.")
    ] = None
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where workers and operators connect.")
    ] = None
    switch: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="P4Runtime server of the switch.")
    ] = None
    data_host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="IPv4 address of the switch, that workers send to."),
    ] = None
    values: Annotated[
        int | None, typer.Option(help=f"Values a packet: {listed('or')}; 0: by the path's MTU.")
    ] = None
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Prometheus endpoint; port 0 takes a free one."),
    ] = None
    embedded_switch: Annotated[
        bool,
        typer.Option(
            "--embedded-switch",
            help="Run a soft switch in this process: on switch.data_host, and in shared memory.",
        ),
    ] = False
    loss_rate: Annotated[
        float,
        typer.Option(help="Probability that the embedded switch's port drops a packet, each way."),
    ] = 0.0
    loss_seed: Annotated[int, typer.Option(help="Seed of the injected loss.")] = 0
    json: JsonOption = False


@app.command()
@command(RunOptions)
def run(asked: RunOptions) -> None:
    """Run a controller until Ctrl-C or SIGTERM.

    SIGHUP makes it read its file again, for tenants, operators' token and certificates.
    """
    log_as_a_service()
    for name in ("loss_rate", "loss_seed"):
        if is_given(asked.ctx, name) and not asked.embedded_switch:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(f"{option}: it is the embedded switch's: add --embedded-switch")
    place: dict[str, str] = {}

    def read() -> Config:
        found = _override(
            asked.config,
            {"listen": asked.listen, "metrics": asked.metrics},
            grpc_addr=asked.switch,
            values=asked.values,
            data_host=asked.data_host,
        )
        return found.with_switch(**place)

    with ExitStack() as stack:
        if asked.embedded_switch:
            place |= _start_switch(read(), stack, asked.loss_rate, asked.loss_seed)
        number = asyncio.run(_serve(read(), asked.json, None if asked.config is None else read))
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file, as for `run`.")],
    json: JsonOption = False,
) -> None:
    """Check a configuration file, the files that it names and its store, and change nothing.

    Exits with 2 and says where if something is wrong. A controller may be running meanwhile.
    """
    config = load_config(file)
    check_files(config)
    check_program(config)
    store = check_store(config.store.location)
    document = config.document()
    document["store"]["url"] = shown(config.store.url)  # it may have a password
    emit({"file": file, "config": document, "store": store}, json, f"{file}: ok; {store}")


@app.command()
def status(controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False) -> None:
    """Show each controller: its role, its switch, its store; exit with 1 if none is primary."""
    rows = [_status(address) for address in addresses(controller)]
    if all("error" in row for row in rows):
        raise UnavailableError("; ".join(row["error"] for row in rows))
    emit(rows, json, lines_or_parts(map(_status_view, rows)))
    if not any(row.get("role") == "primary" for row in rows):
        raise typer.Exit(1)


@app.command()
def show(
    name: AnySwitchName = "",
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """The same as `ina switch show`."""
    show_switch(controller, name, "", json)


def _status(address: str) -> dict[str, Any]:
    """What one controller says of itself, or the error."""
    with controller_at(address) as operator:
        try:
            reply = describe(operator, address)
        except (UnavailableError, RequestRefusedError) as error:
            return {"controller": address, "error": str(error)}
    return {"controller": address, **plain(reply)}


def _status_view(row: dict[str, Any]) -> LineOrParts:
    if "error" in row:
        return LineOrParts([str(row["error"])])
    why = f" ({row['standby_reason']})" if row["standby_reason"] else ""
    running_s = max(0.0, time.time() - row["started_unix_s"])
    switches = [f"switch {row['switch_addr']} {row['switch_state']}"]
    if len(row["switches"]) > 1:
        switches = [f"switch {it['name']} {it['address']} {it['state']}" for it in row["switches"]]
    return LineOrParts(
        [
            f"controller {row['controller']}: {row['role']}{why}, election id"
            f" {row['election_id']}, up {time_text(round(running_s))}",
            *switches,
            f"store {row['store'] or 'in memory'}",
            f"jobs {row['jobs']}, slots {row['slots_used']} of {row['slots_total']} in use, last"
            f" epoch {row['last_epoch']}",
            *(
                f"{it['controller']} is configured otherwise: {', '.join(it['keys'])}"
                for it in row["differs"]
            ),
        ]
    )


def _override(path: Path | None, top: dict[str, str | None], **switch: Any) -> Config:
    """The file's settings, those of the command line (None: not given) before them."""
    document = load_config(path).document() if path else {}
    of_switch = document.get("switch", {})
    if isinstance(of_switch, dict):
        document["switch"] = {**of_switch, **_given(switch)}
    elif given := sorted(_given(switch)):
        options = ", ".join(_OPTIONS[key] for key in given)
        raise InvalidInputError(f"{options}: of which switch? {path} has {len(of_switch)}")
    return make_config({**document, **_given(top)}, "command line")


_OPTIONS = {"grpc_addr": "--switch", "values": "--values", "data_host": "--data-host"}


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _start_switch(config: Config, stack: ExitStack, loss: float, seed: int) -> dict[str, str]:
    """Returns where it is, in words of the configuration."""
    from ina.controller.embedded import data_port
    from ina.switch.ports import ShmPort
    from ina.switch.server import SoftSwitch

    switch = config.switch
    if len(config.switches) > 1:
        raise InvalidInputError("--embedded-switch: it is one, and the file has several")
    if config.switch_tls != TlsConfig():
        raise InvalidInputError("--embedded-switch: switch_tls is for a switch of its own")
    if switch.is_tofino or isinstance(switch.data_port, str):
        raise InvalidInputError(f"--embedded-switch: a soft switch is no {switch.target}")
    program = modes.of(switch.mode)
    of_udp = program.framing == modes.Mode.framing
    udp = data_port(program, switch.data_port, switch.data_host, switch.data_udp_port)
    # For workers on this host; no port that another worker is behind.
    taken = set(config.ports_of(switch))
    shm = ShmPort(next(n for n in range(1, len(taken) + 2) if n not in taken), switch.data_shm)
    running = stack.enter_context(
        SoftSwitch(
            [udp, shm] if of_udp else [udp],
            grpc_addr="127.0.0.1:0",
            device_id=switch.device_id,
            loss_rate=loss,
            loss_seed=seed,
        )
    )
    where = {"grpc_addr": running.grpc_addr}
    return {**where, "data_shm": running.shm_address(shm.number)} if of_udp else where


async def _serve(config: Config, json: bool, read: Callable[[], Config] | None) -> int:
    """Runs until a signal; returns its number. ``read``: the configuration anew, on SIGHUP."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        if task is not None:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        controller = ControllerApp(config)
        reloader = None
        if read is not None:
            reloader = Reloader(controller, read, lambda: stop(signal.SIGHUP))
        async with controller:
            if reloader is not None:
                reloader.begin()
            _say_ready(controller, json)
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        if not received:
            raise
    return received[0]


def _say_ready(controller: ControllerApp, json: bool) -> None:
    switches = controller.config.switches
    ready: dict[str, Any] = {
        "controller": controller.listen_addr,
        "switch": switches[0].grpc_addr,
        "values": switches[0].values,
        "role": controller.role,
    }
    said = f"controller {controller.listen_addr}"
    if len(switches) > 1:
        ready["switches"] = {switch.name: switch.grpc_addr for switch in switches}
    for switch in switches:
        called = f" {switch.name}" if len(switches) > 1 else ""
        said += f", switch{called} {switch.grpc_addr}, {switch.values} values a packet"
    if controller.metrics_addr:
        ready["metrics"] = controller.metrics_addr
        said += f", metrics {controller.metrics_addr}"
    if controller.role == "standby":
        said += ", standby"
    emit(ready, json, f"ready: {said}")
