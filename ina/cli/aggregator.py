"""``ina aggregator``: where jobs of mode ``shared`` have their sums completed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.cli.common.options import command
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


@dataclass(frozen=True, kw_only=True)
class AggregatorOptions:
    """Of ``ina aggregator``."""

    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="IPv4 address that switches reach it at, and its UDP port; 0 takes a free one.",
        ),
    ] = f"127.0.0.1:{UDP_PORT}"
    grpc_addr: Annotated[
        str, typer.Option(help="Where to serve P4Runtime to the controller; port 0: a free one.")
    ] = "127.0.0.1:9559"
    device_id: DeviceIdOption = 1
    loss_rate: Annotated[
        float, typer.Option(help="Probability that it drops a packet, each way.")
    ] = 0.0
    loss_seed: LossSeedOption = 0
    tls_cert: TlsCertOption = ""
    tls_key: TlsKeyOption = ""
    tls_ca: TlsCaOption = ""
    metrics: MetricsOption = ""
    json: ReadyJsonOption = False


@app.command()
@command(AggregatorOptions)
def aggregator(asked: AggregatorOptions) -> None:
    """Run an aggregator until Ctrl-C or SIGTERM: a soft switch that a controller's file lists.

    A table "aggregator" there names it, its P4Runtime address and this UDP address. Jobs of mode
    "shared" have their sums completed here; see docs/shared_slots.md.
    """
    log_as_a_service()
    host, colon, port = asked.listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 0xFFFF:
        raise InvalidInputError(f"--listen {asked.listen!r}: expected HOST:PORT")
    soft_switch = SoftSwitch(
        [UdpPort(PORT, host, int(port))],
        grpc_addr=asked.grpc_addr,
        device_id=asked.device_id,
        loss_rate=asked.loss_rate,
        loss_seed=asked.loss_seed,
        tls=TlsFiles(asked.tls_cert, asked.tls_key, asked.tls_ca, "--tls-"),
    )
    serve_until_told(soft_switch, asked.device_id, metrics=asked.metrics, json=asked.json)
