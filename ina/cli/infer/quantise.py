"""``ina infer quantise``: a plan out of a trained network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, check_output, emit
from ina.errors import InvalidInputError
from ina.infer.files import write_plan
from ina.infer.plan import InferencePlan, read_arrays
from ina.infer.quantise import Layer, Precision, float_answers, layers_of, quantise
from ina.infer.reference import answers_of
from ina.infer.shapes import shapes_of

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class QuantiseOptions:
    """Of ``ina infer quantise``."""

    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="An .npz with NAME.weight and NAME.bias by layer."),
    ]
    output: Annotated[Path, typer.Option("--output", "-o", help="The plan to write, .toml.")]
    samples: Annotated[Path, typer.Option(help="An .npy of inputs of the usual kind.")]
    nodes: Annotated[int, typer.Option(min=1, max=26, help="To spread layers over.")] = 4
    block: Annotated[int, typer.Option(min=1, help="Samples that travel together.")] = 8
    input_bits: Annotated[
        int, typer.Option(min=2, max=24, help="Of what comes in, with its sign.")
    ] = 8
    value_bits: Annotated[
        int, typer.Option(min=2, max=24, help="Of what stages make, with their sign.")
    ] = 14
    weight_bits: Annotated[
        int, typer.Option(min=2, max=24, help="Of weights, with their sign.")
    ] = 10
    json: JsonOption = False


@app.command("quantise")
@command(QuantiseOptions)
def quantise_(asked: QuantiseOptions) -> None:
    """Make integers of a network of linear layers with relu in between, and say what they keep.

    Writes the plan, and its arrays beside it, .npz.
    """
    check_output("--output", asked.output, (".toml",))
    layers = layers_of(read_arrays(asked.model))
    try:
        samples = np.load(asked.samples, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"--samples {asked.samples}: {why}") from None
    nodes = [chr(ord("a") + number) for number in range(asked.nodes)]
    precision = Precision(asked.input_bits, asked.value_bits, asked.weight_bits)
    plan = quantise(asked.output.stem, layers, samples, nodes, precision, block=asked.block)
    shapes_of(plan)  # before anything is written
    same = agreement(plan, layers, samples)
    write_plan(asked.output, plan)
    document = {"plan": asked.output, "layers": len(layers), "samples": len(samples), "same": same}
    said = (
        f"{asked.output}: {len(layers)} layers over {asked.nodes} nodes; of {len(samples)} samples"
        f" {same} have the floats' class"
    )
    emit(document, asked.json, said)


def agreement(plan: InferencePlan, layers: list[Layer], samples: np.ndarray) -> int:
    """How many samples have the class that the floats give them."""
    classes = float_answers(layers, samples).argmax(axis=1)
    return int((answers_of(plan, samples)[:, 0, 0] == classes).sum())
