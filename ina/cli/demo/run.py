"""One training of the demo: runs the example under torchrun and collects what it left."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.cli.common import torchrun
from ina.cli.demo.progress import Progress

_EPOCH = re.compile(r"epoch (\d+)/(\d+): (.*)")


@dataclass(frozen=True)
class Training:
    """What one training produced."""

    backend: str
    workers: int
    seconds: float
    losses: list[float]  # rank 0's, by step
    accuracies: list[float]  # share of the test images, by epoch
    parameters: NDArray[np.float32]
    parameters_sha256: str
    ranks: list[dict[str, Any]]  # ina's counters by rank (ina.torch.GroupStats); empty with Gloo


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is trained, and over what."""

    backend: str
    workers: int
    epochs: int
    seed: int
    values: int
    loss_rate: float

    def environ(self, folder: Path) -> dict[str, str]:
        """Of the workers."""
        over_ina = {
            "INA_VALUES": str(self.values),
            "INA_LOSS_RATE": str(self.loss_rate),
            "INA_LOSS_SEED": str(self.seed),
        }
        return {"INA_STATS_DIR": str(folder), **(over_ina if self.backend == "ina" else {})}


def train(
    script: Path, folder: Path, wanted: Wanted, *, title: str, timeout_s: float, progress: Progress
) -> Training:
    """Run the example once; ``folder`` is made and holds its results.

    Raises :class:`ina.errors.DeadlineError` after ``timeout_s``, and
    :class:`ina.cli.common.torchrun.WorkersFailedError` if a worker fails.
    """
    folder.mkdir()
    result = folder / "result.json"
    bar = progress.begin(title, wanted.epochs)

    def on_line(line: str) -> None:
        match = _EPOCH.fullmatch(line)
        if match:
            progress.advance(bar, title, int(match[1]), int(match[2]), match[3])
        elif line.startswith("ina: "):
            progress.say(line)

    started = time.monotonic()
    torchrun.run(
        script,
        [
            *(f"--{name}={getattr(wanted, name)}" for name in ("backend", "epochs", "seed")),
            f"--result={result}",
        ],
        workers=wanted.workers,
        environ=wanted.environ(folder),
        timeout_s=timeout_s,
        on_line=on_line,
    )
    seconds = time.monotonic() - started
    said = json.loads(result.read_text())
    return Training(
        backend=wanted.backend,
        workers=wanted.workers,
        seconds=seconds,
        losses=said["losses"],
        accuracies=said["accuracies"],
        parameters=np.fromfile(said["parameters_file"], np.float32),
        parameters_sha256=said["parameters_sha256"],
        ranks=[
            json.loads((folder / f"group0.rank{rank}.json").read_text())
            for rank in (range(wanted.workers) if wanted.backend == "ina" else ())
        ],
    )
