"""Plans to measure: networks of drawn weights, of the shapes that the examples have."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from ina.infer.plan import InferencePlan, InputSpec, PlanSpec, StageSpec, checked
from ina.infer.quantise import Layer, quantise

VERTICES, DEGREE, WIDTH, HIDDEN, CLASSES = 4000, 12, 16, 24, 6


def layers(nodes: int, block: int) -> InferencePlan:
    """64 values, 128 hidden ones by rows and columns, 10 classes: as for scans of digits."""
    random = np.random.default_rng(0)
    first = Layer(random.normal(0, 0.18, (128, 64)), random.normal(0, 0.1, 128))
    last = Layer(random.normal(0, 0.12, (10, 128)), random.normal(0, 0.1, 10))
    samples = random.normal(size=(200, 64))
    return quantise("layers", [first, last], samples, names(nodes), block=block)


def graph(nodes: int, block: int) -> InferencePlan:
    """Two layers over sampled neighbours: 4 of a vertex, 4 of each of those."""
    random = np.random.default_rng(0)
    degrees = random.integers(2, 2 * DEGREE - 1, VERTICES)
    arrays = {
        "graph.indptr": np.concatenate([[0], np.cumsum(degrees)]),
        "graph.indices": random.integers(0, VERTICES, int(degrees.sum())),
        "features": random.integers(-127, 128, (VERTICES, WIDTH)),
        "first": random.integers(-31, 32, (HIDDEN, 2 * WIDTH)),
        "last": random.integers(-127, 128, (CLASSES, 2 * HIDDEN)),
    }
    stages = (
        StageSpec(name="around", kernel="frontier", graph="graph", fanout=4, seed=1),
        StageSpec(
            name="gather", kernel="neighbours", graph="graph", table="features", fanout=4, seed=2,
            with_self=True, split="owners",
        ),
        StageSpec(name="first", kernel="linear", weights="first", shift=6, clip=(-4095, 4095)),
        StageSpec(name="bent", kernel="relu"),
        StageSpec(name="folded", kernel="fold"),
        StageSpec(name="last", kernel="linear", weights="last", split="columns"),
        StageSpec(name="best", kernel="argmax"),
    )  # fmt: skip
    spec = PlanSpec(
        name="graph",
        nodes=tuple(names(nodes)),
        input=InputSpec(width=1, low=0, high=VERTICES - 1),
        block=block,
        stage=stages,
    )
    return checked(InferencePlan(spec, arrays))


PLANS: dict[str, Callable[[int, int], InferencePlan]] = {"layers": layers, "graph": graph}


def one_hop(plan: InferencePlan) -> InferencePlan:
    """What asks one node for what is asked, and computes nothing: a floor."""
    stage = StageSpec(name="back", kernel="relu")
    spec = msgspec.structs.replace(plan.spec, name="hop", nodes=("a",), entry="", stage=(stage,))
    return checked(InferencePlan(spec, {}))


def with_block(plan: InferencePlan, block: int) -> InferencePlan:
    """The same, with so many samples in a block."""
    return InferencePlan(msgspec.structs.replace(plan.spec, block=block), plan.arrays)


def names(nodes: int) -> list[str]:
    """a, b, c ..."""
    return [chr(ord("a") + node) for node in range(nodes)]
