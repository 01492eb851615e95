"""``ina switch``: a soft switch until it is told to stop."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from ina.cli.output import emit
from ina.errors import InvalidInputError
from ina.switch.p4runtime.config import config_from_files
from ina.switch.ports import AfPacketPort, PcapPort, Port, UdpPort, parse_port
from ina.switch.server import SoftSwitch

_FOREVER_S = 3600.0


def switch(
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            metavar="SPEC",
            help="NUMBER=udp:ADDRESS:PORT, NUMBER=afpacket:INTERFACE or NUMBER=pcap:IN,OUT; "
            "repeatable. Default: 1=udp:127.0.0.1:17760.",
        ),
    ] = None,
    grpc_addr: Annotated[
        str, typer.Option(help="Where to serve P4Runtime; port 0 takes a free one.")
    ] = "127.0.0.1:9559",
    device_id: Annotated[int, typer.Option(help="P4Runtime device id.")] = 1,
    cpu_port: Annotated[int, typer.Option(help="Port of packet-in and packet-out.")] = 510,
    loss_rate: Annotated[
        float, typer.Option(help="Probability that a port drops a packet, each way.")
    ] = 0.0,
    loss_seed: Annotated[int, typer.Option(help="Seed of the injected loss.")] = 0,
    p4info: Annotated[
        Path | None, typer.Option(help="P4Info (text) of a program to start with.")
    ] = None,
    program: Annotated[
        Path | None, typer.Option(help="BMv2 JSON of a program to start with.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the ready line as JSON.")] = False,
) -> None:
    """Run the soft switch, a P4Runtime device in user space, until Ctrl-C or SIGTERM."""
    if (p4info is None) != (program is None):
        raise InvalidInputError("--p4info and --program go together")
    config = config_from_files(p4info, program) if p4info and program else None
    soft_switch = SoftSwitch(
        [parse_port(spec) for spec in port or ["1=udp:127.0.0.1:17760"]],
        grpc_addr=grpc_addr,
        device_id=device_id,
        cpu_port=cpu_port,
        loss_rate=loss_rate,
        loss_seed=loss_seed,
    )
    with soft_switch:
        if config is not None:
            soft_switch.preload(config)
        _say_ready(soft_switch, device_id, json)
        while True:  # signals end it
            threading.Event().wait(_FOREVER_S)


def _say_ready(soft_switch: SoftSwitch, device_id: int, json: bool) -> None:
    ports: dict[str, Any] = {str(p.number): _place(soft_switch, p) for p in soft_switch.ports}
    said = ", ".join(f"port {number} {place}" for number, place in ports.items())
    ready = {"grpc_addr": soft_switch.grpc_addr, "device_id": device_id, "ports": ports}
    emit(ready, json, f"ready: P4Runtime {soft_switch.grpc_addr}, device {device_id}, {said}")


def _place(soft_switch: SoftSwitch, port: Port) -> str:
    match port:
        case UdpPort(number):
            host, udp_port = soft_switch.udp_address(number)
            return f"udp:{host}:{udp_port}"
        case AfPacketPort(_, interface):
            return f"afpacket:{interface}"
        case PcapPort(_, read, write):
            return f"pcap:{read or ''},{write or ''}"
