"""``ina infer send``: asks a plan."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, check_output, emit
from ina.cli.infer.check import PlanArgument
from ina.errors import InvalidInputError
from ina.infer.client import DEADLINE_S, InferenceClient
from ina.infer.places import read_places
from ina.infer.plan import read_plan
from ina.infer.reference import answers_of

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class SendOptions:
    """Of ``ina infer send``."""

    plan: PlanArgument
    places: Annotated[Path, typer.Option(help="Where its nodes are.")]
    samples: Annotated[Path, typer.Option(help="An .npy of shape (samples, width).")]
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the answers there, .npy.")
    ] = None
    batch: Annotated[int, typer.Option(min=1, help="Samples in a request.")] = 1024
    deadline_s: Annotated[float, typer.Option(help="Of a request.")] = DEADLINE_S
    check: Annotated[
        bool, typer.Option("--check", help="Compute the answers here, too; 1 if they differ.")
    ] = False
    json: JsonOption = False


@app.command()
@command(SendOptions)
def send(asked: SendOptions) -> None:
    """Ask for all samples, and say how long requests took.

    Exits with 2 where an answer does not come: the message says which node was not heard.
    """
    if not 0.01 <= asked.deadline_s <= 86400:
        raise InvalidInputError(f"--deadline-s {asked.deadline_s:g}: want 0.01 to 86400")
    if asked.output is not None:
        check_output("--output", asked.output, (".npy",))
    plan = read_plan(asked.plan)
    samples = _samples(asked.samples)
    times_s: list[float] = []
    answers = []
    with InferenceClient(
        plan, read_places(asked.places, plan), deadline_s=asked.deadline_s
    ) as client:
        for first in range(0, len(samples), asked.batch):
            begun = time.perf_counter()
            answers.append(client.infer(samples[first : first + asked.batch]))
            times_s.append(time.perf_counter() - begun)
        again = client.native.counters.again
    made = np.concatenate(answers) if answers else np.empty((0, 1, 1), np.int32)
    if asked.output is not None:
        np.save(asked.output, made)
    document: dict[str, Any] = {
        "plan": plan.spec.name,
        "samples": len(samples),
        "requests": len(times_s),
        "median_ms": float(np.median(times_s) * 1e3) if times_s else 0.0,
        "longest_ms": max(times_s, default=0.0) * 1e3,
        "asked_again": again,
    }
    said = (
        f"{len(samples)} samples in {len(times_s)} requests, {document['median_ms']:.2f} ms each"
        f" (median; longest {document['longest_ms']:.2f} ms), {again} blocks asked for again"
    )
    if asked.check:
        wrong = int((made != answers_of(plan, samples)).any(axis=(1, 2)).sum())
        document["wrong"] = wrong
        said += f", {wrong} wrong"
    emit(document, asked.json, said)
    if document.get("wrong"):
        raise SystemExit(1)


def _samples(path: Path) -> NDArray[Any]:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"--samples {path}: {why}") from None
    if not isinstance(found, np.ndarray):
        raise InvalidInputError(f"--samples {path}: want one array, .npy")
    return found
