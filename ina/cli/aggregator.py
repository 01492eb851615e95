"""``ina aggregator``: where jobs of mode ``shared`` have their sums completed."""

from __future__ import annotations

from typing import Annotated

import typer

from ina.cli.log_options import log_as_a_service
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
from ina.errors import InvalidInputError
from ina.protocol.spec import UDP_PORT
from ina.rpc.tls import TlsFiles
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch

PORT = 1
"""Its only one: ``data_port`` of ``[[aggregator]]``, by default."""

app = typer.Typer()


@app.command()
def aggregator(
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="IPv4 address that switches reach it at, and its UDP port; 0 takes a free one.",
        ),
    ] = f"127.0.0.1:{UDP_PORT}",
    grpc_addr: Annotated[
        str, typer.Option(help="Where to serve P4Runtime to the controller; port 0: a free one.")
    ] = "127.0.0.1:9559",
    device_id: DeviceIdOption = 1,
    loss_rate: Annotated[
        float, typer.Option(help="Probability that it drops a packet, each way.")
    ] = 0.0,
    loss_seed: LossSeedOption = 0,
    tls_cert: TlsCertOption = "",
    tls_key: TlsKeyOption = "",
    tls_ca: TlsCaOption = "",
    metrics: MetricsOption = "",
    json: ReadyJsonOption = False,
) -> None:
    """Run an aggregator until Ctrl-C or SIGTERM: a soft switch that a controller's file lists.

    A table "aggregator" there names it, its P4Runtime address and this UDP address. Jobs of mode
    "shared" have their sums completed here; see docs/shared_slots.md.
    """
    log_as_a_service()
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 0xFFFF:
        raise InvalidInputError(f"--listen {listen!r}: expected HOST:PORT")
    soft_switch = SoftSwitch(
        [UdpPort(PORT, host, int(port))],
        grpc_addr=grpc_addr,
        device_id=device_id,
        loss_rate=loss_rate,
        loss_seed=loss_seed,
        tls=TlsFiles(tls_cert, tls_key, tls_ca, "--tls-"),
    )
    serve_until_told(soft_switch, device_id, metrics=metrics, json=json)
