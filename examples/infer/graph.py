"""Vertices of a graph: two layers over sampled neighbours, as GraphSAGE has, served by four nodes.

The graph is made here: communities, whose members know each other, with noisy features. Features
are spread over the nodes; each sums those that it owns of a vertex's neighbours, and the switch
adds up the parts. The first layer is drawn, the last one is fitted.

Prints how many answers are those of one process (all, or it exits with 1).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from ina.infer.client import InferenceClient
from ina.infer.files import write_plan
from ina.infer.local import LocalNodes, LocalOptions
from ina.infer.plan import InferencePlan, InputSpec, PlanSpec, StageSpec, checked
from ina.infer.reference import answers_of

NODES = ("a", "b", "c", "d")
VERTICES, COMMUNITIES, DEGREE, WIDTH, HIDDEN = 4000, 6, 12, 16, 24
AROUND, BEYOND = 4, 4  # neighbours of a vertex, and of each of those


def make_graph(random: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Arrays of the graph and the features, and each vertex's community."""
    community = random.integers(COMMUNITIES, size=VERTICES)
    members = [np.flatnonzero(community == one) for one in range(COMMUNITIES)]
    degrees = random.integers(2, 2 * DEGREE - 1, VERTICES)
    strangers = random.random(int(degrees.sum())) < 0.3
    of = np.repeat(community, degrees)
    friends = np.array([random.choice(members[one]) for one in of])
    known = np.where(strangers, random.integers(VERTICES, size=len(of)), friends)
    centres = random.normal(0, 1, (COMMUNITIES, WIDTH))
    features = centres[community] + random.normal(0, 2.0, (VERTICES, WIDTH))
    return {
        "graph.indptr": np.concatenate([[0], np.cumsum(degrees)]),
        "graph.indices": known,
        "features": np.clip(np.rint(features * 20), -127, 127).astype(np.int64),
    }, community


def plan_of(arrays: dict[str, np.ndarray], stages: int | None = None) -> InferencePlan:
    """The plan, or its first stages."""
    all_stages = (
        StageSpec(name="around", kernel="frontier", graph="graph", fanout=AROUND, seed=1),
        StageSpec(
            name="gather", kernel="neighbours", graph="graph", table="features", fanout=BEYOND,
            seed=2, with_self=True, split="owners",
        ),
        StageSpec(name="first", kernel="linear", weights="first", shift=6, clip=(-4095, 4095)),
        StageSpec(name="bent", kernel="relu"),
        StageSpec(name="folded", kernel="fold"),
        StageSpec(name="last", kernel="linear", weights="last", bias="bias", split="columns"),
        StageSpec(name="best", kernel="argmax"),
    )  # fmt: skip
    spec = PlanSpec(
        name="graph",
        nodes=NODES,
        input=InputSpec(width=1, low=0, high=VERTICES - 1),
        block=4,
        stage=all_stages[:stages],
    )
    return checked(InferencePlan(spec, arrays))


def fit_last(arrays: dict[str, np.ndarray], community: np.ndarray, some: np.ndarray) -> None:
    """Weights of the last layer, by least squares on the values that come to it."""
    values = answers_of(plan_of(arrays, 5), some)[:, 0, :].astype(np.float64)
    wide = np.hstack([values / 4096, np.ones((len(values), 1))])
    wanted = np.eye(COMMUNITIES)[community[some]]
    ridge = np.eye(wide.shape[1]) * 1e-2
    solved = np.linalg.solve(wide.T @ wide + ridge, wide.T @ wanted).T
    scale = 255 / np.abs(solved[:, :-1]).max()
    arrays["last"] = np.rint(solved[:, :-1] * scale).astype(np.int64)
    arrays["bias"] = np.rint(solved[:, -1] * scale * 4096).astype(np.int64)


def main() -> int:
    """Make a graph, fit, serve, ask, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loss-rate", type=float, default=0.0, help="of packets, to see it mend")
    parser.add_argument("--keep", type=Path, help="a folder for plan, arrays and samples")
    asked = parser.parse_args()
    random = np.random.default_rng(0)
    arrays, community = make_graph(random)
    arrays["first"] = random.integers(-31, 32, (HIDDEN, 2 * WIDTH))
    order = random.permutation(VERTICES)
    fit_last(arrays, community, order[:1000])
    test = order[1000:2000].astype(np.int32)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        plan = write_plan(folder / "graph.toml", plan_of(arrays))
        np.save(folder / "test.npy", test)
        options = LocalOptions(loss_rate=asked.loss_rate)
        places = folder / "places.json"
        with (
            LocalNodes(folder / "graph.toml", plan, places, options) as nodes,
            InferenceClient(plan, nodes.where) as client,
        ):
            answers = client.infer(test)
    wrong = int((answers != answers_of(plan, test)).any(axis=(1, 2)).sum())
    right = float(np.mean(answers[:, 0, 0] == community[test]))
    print(
        f"{len(test)} vertices: {wrong} answers differ from one process's; right: {right:.1%}, by"
        f" chance {1 / COMMUNITIES:.1%}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
