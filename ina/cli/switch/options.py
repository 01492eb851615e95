"""Options of whatever runs a soft switch until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from ina.cli.common.bounds import MAX_SEED

DeviceIdOption = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="P4Runtime device id.")]
LossSeedOption = Annotated[int, typer.Option(help="Seed of the injected loss.")]
TlsCertOption = Annotated[
    str, typer.Option(metavar="FILE", help="Serve P4Runtime with TLS: certificate, PEM.")
]
TlsKeyOption = Annotated[str, typer.Option(metavar="FILE", help="Its private key, PEM.")]
TlsCaOption = Annotated[
    str, typer.Option(metavar="FILE", help="Mutual TLS: who signs controllers' certificates.")
]
MetricsOption = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Prometheus endpoint; port 0: a free one.")
]
ReadyJsonOption = Annotated[bool, typer.Option("--json", help="Print the ready line as JSON.")]
