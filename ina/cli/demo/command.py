"""``ina demo``: trains on real digits through the P4 switch, then the same with Gloo."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common import torchrun
from ina.cli.common.output import JsonOption, emit
from ina.cli.demo.plot import plot
from ina.cli.demo.progress import Progress
from ina.cli.demo.report import compare, write_json
from ina.cli.demo.report import table as report_table
from ina.cli.demo.run import Training, Wanted, train
from ina.errors import InvalidInputError
from ina.files import root
from ina.p4.builds import listed, require_build
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET, MAX_WORKERS


def demo(
    workers: Annotated[int, typer.Option(help="Processes that train together, 1 to 32.")] = 4,
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 15,
    values: Annotated[
        int, typer.Option(help=f"Values a packet: {listed('or')}.")
    ] = DEFAULT_VALUES_PER_PACKET,
    loss_rate: Annotated[
        float, typer.Option(help="Share of packets dropped at the switch's ports, each way.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the model, of the batches and of the drops.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for curves and results.")] = Path("out/demo"),
    timeout_s: Annotated[float, typer.Option(min=1, help="Deadline of each training.")] = 300.0,
    json: JsonOption = False,
) -> None:
    """Train a small CNN on scikit-learn's 8x8 digits through the P4 switch, then with Gloo.

    Exit code 1 if a gradient was not summed in P4, if the accuracies differ by more than 0.5
    points, or if packet loss changed the parameters.
    """
    _check(workers, epochs, values, loss_rate)
    torchrun.require("torch", "sklearn", "matplotlib")
    out.mkdir(parents=True, exist_ok=True)
    script = root() / "examples" / "ddp_digits.py"
    wanted = Wanted(
        backend="ina", workers=workers, epochs=epochs, seed=seed, values=values, loss_rate=loss_rate
    )
    with Progress() as progress, tempfile.TemporaryDirectory() as scratch:

        def training(title: str, backend: str, loss: float) -> Training:
            return train(
                script,
                Path(scratch) / f"{backend}-{loss}",
                replace(wanted, backend=backend, loss_rate=loss),
                title=title,
                timeout_s=timeout_s,
                progress=progress,
            )

        through = "through P4" if not loss_rate else f"through P4, {loss_rate:.0%} loss"
        run = training(through, "ina", loss_rate)
        lossless = training("through P4, no loss", "ina", 0.0) if loss_rate else None
        gloo = training("with Gloo", "gloo", 0.0)
    report = compare(run, gloo, lossless, values=values, loss_rate=loss_rate)
    report.curve = os.fspath(plot(run, gloo, out / "loss.png", loss_rate=loss_rate))
    write_json(report, out / "report.json")
    emit(report, json, report_table(report))
    if report.failures:
        raise typer.Exit(1)


def _check(workers: int, epochs: int, values: int, loss_rate: float) -> None:
    if not 1 <= workers <= MAX_WORKERS:
        raise InvalidInputError(f"--workers {workers}: one switch sums 1 to {MAX_WORKERS} workers")
    if epochs < 1:
        raise InvalidInputError(f"--epochs {epochs}: want at least 1")
    require_build("--values", values)
    if not 0.0 <= loss_rate < 1.0:
        raise InvalidInputError(f"--loss-rate {loss_rate:g}: want 0 <= rate < 1")
