"""``ina controller``: run a controller, check its configuration, show what it installed."""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group

from ina.cli.output import emit, table
from ina.cli.rpc_client import ControllerOption, JsonOption, call, controller_at
from ina.controller.app import ControllerApp
from ina.controller.config import DEFAULT_LISTEN, Config, load_config, make_config
from ina.rpc import controller_pb2 as pb2

app = typer.Typer(help="Run and inspect the controller.", no_args_is_help=True)


@app.callback()
def _controller() -> None:
    """Run and inspect the controller."""


@app.command()
def run(
    config: Annotated[Path | None, typer.Argument(help="TOML file; without it, defaults.")] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where workers and operators connect.")
    ] = None,
    switch: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="P4Runtime server of the switch.")
    ] = None,
    values: Annotated[int | None, typer.Option(help="Values a packet: 64 or 256.")] = None,
    embedded_switch: Annotated[
        bool,
        typer.Option(help="Run a soft switch in this process, on switch.data_host and its port."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run a controller until Ctrl-C or SIGTERM."""
    settings = _override(config, listen=listen, grpc_addr=switch, values=values)
    with ExitStack() as stack:
        if embedded_switch:
            settings = _start_switch(settings, stack)
        number = asyncio.run(_serve(settings, json))
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@app.command()
def check(file: Path, json: JsonOption = False) -> None:
    """Check a configuration file; exit with 2 and say where if it is wrong."""
    config = load_config(file)
    emit({"file": file, "config": config}, json, f"{file}: ok")


@app.command()
def show(controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False) -> None:
    """Show what the switch has, read back over P4Runtime: entries, groups, counters."""
    with controller_at(controller) as stub:
        reply = call(stub.ShowSwitch, pb2.ShowSwitchRequest(), controller)
    entries = [[entry.table, entry.match, entry.action] for entry in reply.entries]
    counters = [[c.name, c.index, c.label, c.packets, c.bytes] for c in reply.counters]
    entry_columns = ["table", "match", "action"]
    counter_columns = ["name", "index", "label", "packets", "bytes"]
    summary = {
        "program": reply.program,
        "device_id": reply.device_id,
        "slots_total": reply.slots_total,
        "slots_used": reply.slots_used,
    }
    emit(
        {
            **summary,
            "entries": [dict(zip(entry_columns, row, strict=True)) for row in entries],
            "counters": [dict(zip(counter_columns, row, strict=True)) for row in counters],
        },
        json,
        Group(
            f"{reply.program}; device {reply.device_id}; slots {reply.slots_used} of"
            f" {reply.slots_total} in use",
            table(entry_columns, entries),
            table(counter_columns, counters),
        ),
    )


def _override(path: Path | None, *, listen: str | None, **switch: Any) -> Config:
    """The file's settings, those of the command line before them."""
    document = msgspec.to_builtins(load_config(path)) if path else {}
    changes = {key: value for key, value in switch.items() if value is not None}
    document["switch"] = {**document.get("switch", {}), **changes}
    if listen is not None:
        document["listen"] = listen
    return make_config(document, "command line")


def _start_switch(config: Config, stack: ExitStack) -> Config:
    from ina.switch.ports import UdpPort
    from ina.switch.server import SoftSwitch

    switch = config.switch
    port = UdpPort(switch.data_port, switch.data_host, switch.data_udp_port)
    running = stack.enter_context(
        SoftSwitch([port], grpc_addr="127.0.0.1:0", device_id=switch.device_id)
    )
    return msgspec.structs.replace(
        config, switch=msgspec.structs.replace(switch, grpc_addr=running.grpc_addr)
    )


async def _serve(config: Config, json: bool) -> int:
    """Runs until a signal; returns its number."""
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
        async with ControllerApp(config) as controller:
            _say_ready(controller, json)
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        if not received:
            raise
    return received[0]


def _say_ready(controller: ControllerApp, json: bool) -> None:
    switch = controller.config.switch
    ready = {
        "controller": controller.listen_addr,
        "switch": switch.grpc_addr,
        "values": switch.values,
    }
    said = f"controller {controller.listen_addr}, switch {switch.grpc_addr}"
    emit(ready, json, f"ready: {said}, {switch.values} values a packet")
