"""Small plans of any kind, by a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ina.infer.plan import InferencePlan, InputSpec, PlanSpec, StageSpec, checked

Array = NDArray[Any]
SPLIT = 4
"""Of dense(): a seed whose plan has layers by rows and by columns."""


def names(count: int) -> tuple[str, ...]:
    return tuple("abcdefgh"[:count])


def integers(random: np.random.Generator, most: int, *shape: int) -> Array:
    return random.integers(-most, most + 1, shape)


def dense(seed: int, nodes: int, *, block: int = 2, packet_values: int = 16) -> InferencePlan:
    """Linear stages by rows and by columns, relu, maybe a sum with an earlier one, argmax."""
    random = np.random.default_rng([seed, 1])
    width = int(random.integers(4, 20))
    arrays: dict[str, Array] = {}
    stages: list[StageSpec] = []
    last = width
    for number in range(int(random.integers(1, 4))):
        made = int(random.integers(nodes, 24))
        name = f"layer{number}"
        arrays[f"{name}.w"] = integers(random, 9, made, last)
        arrays[f"{name}.b"] = integers(random, 50, made)
        split = str(random.choice(["", "rows", "columns"]))
        if last < nodes:
            split = "rows" if split == "columns" else split
        stages.append(
            StageSpec(
                name=name,
                kernel="linear",
                weights=f"{name}.w",
                bias=f"{name}.b",
                shift=int(random.integers(0, 6)),
                split=split,  # type: ignore[arg-type]
                clip=(-1000, 900) if random.integers(2) else None,
                nodes=_some(random, nodes) if not split else (),
            )
        )
        if random.integers(2):
            stages.append(StageSpec(name=f"relu{number}", kernel="relu"))
            if random.integers(2):
                stages.append(StageSpec(name=f"add{number}", kernel="add", of=name))
        last = made
    if random.integers(2):
        stages.append(StageSpec(name="best", kernel="argmax"))
    spec = PlanSpec(
        name="dense",
        nodes=names(nodes),
        entry=names(nodes)[int(random.integers(nodes))],
        input=InputSpec(width=width, low=-16, high=15),
        block=block,
        packet_values=packet_values,
        stage=tuple(stages),
    )
    return checked(InferencePlan(spec, arrays))


def _some(random: np.random.Generator, nodes: int) -> tuple[str, ...]:
    count = int(random.integers(1, nodes + 1))
    return tuple(names(nodes)[i] for i in random.permutation(nodes)[:count])


def graph(seed: int, nodes: int, *, block: int = 2, packet_values: int = 32) -> InferencePlan:
    """Two layers over sampled neighbours, as GraphSAGE has them."""
    random = np.random.default_rng([seed, 2])
    vertices, width, hidden, classes = int(random.integers(5, 30)), 3, 6, 4
    degrees = random.integers(0, 7, vertices)
    spec = PlanSpec(
        name="graph",
        nodes=names(nodes),
        input=InputSpec(width=1, low=0, high=vertices - 1),
        block=block,
        packet_values=packet_values,
        stage=(
            StageSpec(name="around", kernel="frontier", graph="g", fanout=3, seed=seed),
            StageSpec(
                name="gather", kernel="neighbours", graph="g", table="x", fanout=2,
                seed=seed + 1, with_self=True, split="owners",
            ),
            StageSpec(name="first", kernel="linear", weights="w1", shift=3),
            StageSpec(name="bent", kernel="relu"),
            StageSpec(name="folded", kernel="fold"),
            StageSpec(
                name="second", kernel="linear", weights="w2", bias="b2", split="columns", shift=2
            ),
            StageSpec(name="best", kernel="argmax"),
        ),
    )  # fmt: skip
    arrays = {
        "g.indptr": np.concatenate([[0], np.cumsum(degrees)]),
        "g.indices": random.integers(0, vertices, int(degrees.sum())),
        "x": integers(random, 20, vertices, width),
        "w1": integers(random, 9, hidden, 2 * width),
        "w2": integers(random, 9, classes, 2 * hidden),
        "b2": integers(random, 9, classes),
    }
    return checked(InferencePlan(spec, arrays))


def looked_up(seed: int, nodes: int) -> InferencePlan:
    """Rows of a table, and a layer."""
    random = np.random.default_rng([seed, 3])
    rows, width = int(random.integers(3, 40)), int(random.integers(nodes, 12))
    spec = PlanSpec(
        name="rows",
        nodes=names(nodes),
        input=InputSpec(width=1, low=-1, high=rows - 1),
        block=3,
        packet_values=8,
        stage=(
            StageSpec(name="row", kernel="embed", table="t", split="owners"),
            StageSpec(name="layer", kernel="linear", weights="w", split="columns"),
        ),
    )
    arrays = {"t": integers(random, 99, rows, width), "w": integers(random, 9, 5, width)}
    return checked(InferencePlan(spec, arrays))


def samples_of(plan: InferencePlan, seed: int, count: int) -> NDArray[np.int32]:
    given = plan.spec.input
    random = np.random.default_rng([seed, 4])
    return random.integers(given.low, given.high + 1, (count, given.width)).astype(np.int32)


def with_stage(plan: InferencePlan, number: int, **changes: Any) -> InferencePlan:
    """The same but for that stage."""
    stages = list(plan.spec.stage)
    stages[number] = msgspec.structs.replace(stages[number], **changes)
    return with_spec(plan, stage=tuple(stages))


def with_spec(plan: InferencePlan, **changes: Any) -> InferencePlan:
    return replace(plan, spec=msgspec.structs.replace(plan.spec, **changes))


def with_arrays(plan: InferencePlan, **changes: Any) -> InferencePlan:
    return replace(plan, arrays={**plan.arrays, **changes})


def local(plan: InferencePlan) -> InferencePlan:
    """The same without sums: no switch is needed."""
    stages = tuple(msgspec.structs.replace(stage, split="") for stage in plan.spec.stage)
    return with_spec(plan, stage=stages)
