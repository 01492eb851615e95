"""Plans: what is refused, and where things lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ina.extension import infer as native
from ina.infer.errors import PlacesError, PlanError, RequestError
from ina.infer.files import write_plan
from ina.infer.places import around, read_places, write_places
from ina.infer.placing import place, program_of, summed
from ina.infer.plan import InferencePlan, StageSpec, checked, read_plan
from ina.infer.quantise import Precision, float_answers, layers_of, quantise
from ina.infer.reference import answers_of, checked_samples, run_stage
from ina.infer.shapes import shapes_of
from tests.infer.plans import (
    dense,
    graph,
    looked_up,
    samples_of,
    with_arrays,
    with_spec,
    with_stage,
)

SEEDS = range(12)
Change = Callable[[InferencePlan], InferencePlan]


@pytest.mark.parametrize(
    "make", [lambda s: dense(s, 3), lambda s: graph(s, 4), lambda s: looked_up(s, 2)]
)
def test_a_plan_is_read_as_it_was_written(
    make: Callable[[int], InferencePlan], tmp_path: Path
) -> None:
    for seed in SEEDS:
        plan = make(seed)
        read = write_plan(tmp_path / "plan.toml", plan)
        assert read.spec.stage == plan.spec.stage
        samples = samples_of(plan, seed, 20)
        assert np.array_equal(answers_of(read, samples), answers_of(plan, samples))


BAD: list[tuple[Change, str]] = [
    (lambda p: with_spec(p, name="a b"), "name: 'a b'"),
    (lambda p: with_spec(p, nodes=("a", "a")), "nodes: want 1 to 32 different names"),
    (lambda p: with_spec(p, entry="z"), "entry: 'z' is none of a, b, c, d"),
    (lambda p: with_spec(p, window=100), "window: 100: want a multiple of 64"),
    (lambda p: with_spec(p, block=0), "block: 0: want 1 to"),
    (lambda p: with_stage(p, 0, nodes=("z",)), "stage 'around': node 'z'"),
    (lambda p: with_stage(p, 2, split="owners"), "linear takes '' or 'rows' or 'columns'"),
    (lambda p: with_stage(p, 2, shift=40), "shift 40: want 0 to 31"),
    (lambda p: with_stage(p, 2, clip=(5, 4)), "clip 5, 4"),
    (lambda p: with_stage(p, 1, fanout=0), "fanout 0: want 1 to 4096"),
    (lambda p: with_stage(p, 2, weights="nix"), "no array 'nix' among"),
    (lambda p: with_stage(p, 3, kernel="add", of="last"), "of 'last': stages before it are"),
    (lambda p: with_stage(p, 5, kernel="add", of="gather", split=""), "adds 4 x 6 values"),
    (lambda p: with_stage(p, 6, kernel="fold"), "folds rows, and a sample has one"),
    (lambda p: with_stage(p, 5, kernel="embed", table="x", split=""), "takes one number a row"),
    (lambda p: with_arrays(p, w1=np.ones((6, 5), int)), "weights of shape (6, 5): want (out, 6)"),
    (lambda p: with_arrays(p, w1=np.ones((6, 6))), "is float64: want integers"),
    (lambda p: with_arrays(p, w1=np.full((6, 6), 2**40)), "values outside int32"),
    (lambda p: with_arrays(p, w1=np.full((6, 6), 2**27)), "a sum may reach"),
    (lambda p: with_arrays(p, b2=np.ones(3, int)), "bias of shape (3,): want (4,)"),
    (lambda p: with_arrays(p, x=np.ones((3, 3), int)), "and a table of 3 rows"),
    (lambda p: with_arrays(p, **{"g.indices": p.arrays["g.indices"] + 99}), "want 0 to"),
    (lambda p: with_arrays(p, **{"g.indptr": p.arrays["g.indptr"] + 1}), "does not cut the edges"),
    (lambda p: with_spec(p, input=msgspec.structs.replace(p.spec.input, high=999)), "gets numbers"),
    (lambda p: with_spec(p, input=msgspec.structs.replace(p.spec.input, low=5, high=4)), "low 5"),
    (lambda p: with_spec(p, input=msgspec.structs.replace(p.spec.input, scale=0.0)), "scale"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_wrong_with_a_plan_is_said(change: Change, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        place(checked(change(graph(3, 4))))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_columns_for_the_nodes() -> None:
    plan = with_stage(graph(3, 4), 5, split="rows", weights="narrow", bias="")
    with pytest.raises(PlanError, match="3 columns cannot be split among 4 nodes"):
        place(with_arrays(plan, narrow=np.ones((3, 12), int)))


def test_files_that_are_no_plans(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    with pytest.raises(PlanError, match="No such file"):
        read_plan(path)
    path.write_text("name = ")
    with pytest.raises(PlanError, match=r"plan\.toml: "):
        read_plan(path)
    write_plan(path, graph(1, 2))
    path.write_text(path.read_text().replace("block", "blok"))
    with pytest.raises(PlanError, match=r"plan\.toml: blok: .*did you mean 'block'"):
        read_plan(path)
    write_plan(path, graph(1, 2))
    path.with_suffix(".npz").write_bytes(b"PK nonsense")
    with pytest.raises(PlanError, match="arrays "):
        read_plan(path)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_value_leaves_the_bounds_that_are_proven(seed: int) -> None:
    for plan in (dense(seed, 4), graph(seed, 4), looked_up(seed, 3)):
        shapes = shapes_of(plan)
        values = samples_of(plan, seed, 200).astype(np.int64)[:, np.newaxis, :]
        made: dict[str, Any] = {}
        for stage, shape in zip(plan.spec.stage, shapes[1:], strict=True):
            values = made[stage.name] = run_stage(plan, stage, values, made)
            assert values.shape[1:] == (shape.rows, shape.width)
            assert (values >= shape.low).all()
            assert (values <= shape.high).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kernel_makes_what_numpy_does(seed: int) -> None:
    """Each stage by itself at one node, on whatever its input's bounds admit."""
    for plan in (dense(seed, 1), graph(seed, 1), looked_up(seed, 1)):
        placed = place(plan)
        program = program_of(plan, placed, 0, around(plan, {"a": "127.0.0.1:1"}))
        random = np.random.default_rng(seed)
        block = plan.spec.block
        earlier: dict[str, Any] = {}
        for one, stage in zip(placed[1:], program.stages[1:], strict=True):
            assert one.spec is not None
            low, high = one.before.low, one.before.high + 1
            values = random.integers(low, high, (block, one.before.rows, one.before.width))
            if one.spec.kernel == "add":
                values = random.integers(-9, 10, values.shape)
            wide = np.ascontiguousarray(values.astype(np.int32))
            out = np.empty((block, one.shape.rows, one.shape.width), np.int32)
            added = np.ascontiguousarray(earlier.get(one.spec.of, values), np.int32)
            native.run_kernel(stage, wide.ctypes.data, added.ctypes.data, out.ctypes.data)
            want = run_stage(plan, one.spec, values, earlier)
            assert np.array_equal(out, want), one.name
            earlier[one.name] = want


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_columns_that_a_stage_needs_come_from_somewhere_once(nodes: int) -> None:
    for seed in SEEDS:
        plan = dense(seed, nodes)
        placed = place(plan)
        where = around(plan, dict.fromkeys(plan.spec.nodes, "127.0.0.1:1"))
        programs = [program_of(plan, placed, node, where) for node in range(nodes)]
        for k in range(1, len(placed)):
            for node, (low, high) in placed[k].needs.items():
                stage = programs[node].stages[k]
                got = [(edge.columns.low, edge.columns.high) for edge in stage.inbound]
                got += [(stage.own.low, stage.own.high)] if stage.own.high > stage.own.low else []
                columns = sorted(column for first, end in got for column in range(first, end))
                assert columns == list(range(low, high))
        specs = [placed[k].spec for k in summed(placed)]
        assert all(spec is not None and spec.split in ("columns", "owners") for spec in specs)


def test_rows_then_columns_need_no_packets_in_between() -> None:
    layers = layers_of({"0.weight": np.ones((8, 4)), "2.weight": np.ones((3, 8))})
    plan = quantise("p", layers, np.ones((2, 4)), ["a", "b"])
    placed = place(plan)
    where = around(plan, {"a": "127.0.0.1:1", "b": "127.0.0.1:2"})
    for node in range(2):
        stages = program_of(plan, placed, node, where).stages
        assert [stage.inbound for stage in stages[2:]] == [[], [], []]
    assert summed(placed) == [3]


class TestSamples:
    def test_floats_are_scaled_and_bounded(self) -> None:
        plan = with_spec(
            dense(1, 1), input=msgspec.structs.replace(dense(1, 1).spec.input, scale=4.0)
        )
        width = plan.spec.input.width
        got = checked_samples(plan, np.full((1, width), 1.3))
        assert got.tolist() == [[5] * width]
        assert checked_samples(plan, np.full((1, width), 1e9)).tolist() == [[15] * width]

    @pytest.mark.parametrize(
        ("samples", "said"),
        [
            (np.zeros((2, 3), np.int32), "samples of shape"),
            (np.full((1, 1), 99), "the plan takes 0 to"),
            (np.full((1, 1), np.nan), "not all are finite"),
            (np.array([["a"]]), "want integers or floats"),
        ],
    )
    def test_what_cannot_be_asked(self, samples: Any, said: str) -> None:
        with pytest.raises(RequestError, match=said):
            checked_samples(graph(1, 1), samples)


class TestQuantise:
    @pytest.mark.parametrize("nodes", [1, 4])
    def test_integers_keep_the_floats_classes(self, nodes: int) -> None:
        random = np.random.default_rng(5)
        layers = layers_of(
            {
                "2.weight": random.normal(size=(6, 40)) / 6,
                "0.weight": random.normal(size=(40, 16)) / 4,
                "0.bias": random.normal(size=40) / 4,
            }
        )
        samples = random.normal(size=(500, 16))
        plan = quantise("p", layers, samples, list("abcd"[:nodes]), Precision(12, 16, 12))
        shapes_of(plan)
        same = answers_of(plan, samples)[:, 0, 0] == float_answers(layers, samples).argmax(axis=1)
        assert same.mean() > 0.97

    @pytest.mark.parametrize(
        ("state", "said"),
        [
            ({}, "there is no layer"),
            ({"0.weight": np.ones((2, 3)), "0.running_mean": np.ones(2)}, "want linear layers"),
            ({"0.weight": np.ones((2, 3, 3))}, "want a linear layer"),
            ({"0.weight": np.full((2, 3), np.inf)}, "not all finite"),
            ({"0.weight": np.ones((2, 3)), "1.weight": np.ones((2, 3))}, "layer before makes 2"),
            (object(), "what has a state_dict"),
        ],
    )  # fmt: skip
    def test_what_is_no_network_of_layers(self, state: object, said: str) -> None:
        with pytest.raises(PlanError, match=said):
            layers_of(state)


class TestPlaces:
    def test_they_are_read_as_written_and_are_secret(self, tmp_path: Path) -> None:
        plan, path = graph(1, 2), tmp_path / "places.json"
        where = around(plan, {"a": "10.0.0.1:7000", "b": "10.0.0.2:7000"})
        write_places(path, plan, where)
        assert read_places(path, plan) == where
        assert path.stat().st_mode & 0o77 == 0

    def test_of_another_plan_or_damaged(self, tmp_path: Path) -> None:
        plan, path = graph(1, 2), tmp_path / "places.json"
        write_places(path, plan, around(plan, {"a": "10.0.0.1:1", "b": "10.0.0.2:1"}))
        with pytest.raises(PlacesError, match="the plan or its arrays have changed since"):
            read_places(path, with_arrays(plan, b2=np.zeros(4, int)))
        path.write_text("{}")
        with pytest.raises(PlacesError, match=r"places\.json"):
            read_places(path, plan)
        with pytest.raises(PlacesError, match="No such file"):
            read_places(tmp_path / "none", plan)

    @pytest.mark.parametrize(
        "nodes",
        [
            {"a": "10.0.0.1:1"},
            {"a": "x:1", "b": "10.0.0.1:1"},
            {"a": "10.0.0.1", "b": "10.0.0.1:0"},
        ],
    )
    def test_that_make_no_sense(self, nodes: dict[str, str]) -> None:
        with pytest.raises(PlacesError, match="place"):
            around(graph(1, 2), nodes)


def test_an_add_whose_values_lie_elsewhere_is_refused() -> None:
    plan = dense(1, 2)
    stages = (
        StageSpec(name="one", kernel="linear", weights="w", split="rows"),
        StageSpec(name="two", kernel="linear", weights="v", split="columns"),
        StageSpec(name="sum", kernel="add", of="one"),
    )
    width = plan.spec.input.width
    arrays = {"w": np.ones((4, width), int), "v": np.ones((4, 4), int)}
    with pytest.raises(PlanError, match="has its values at other nodes, or other columns"):
        place(checked(InferencePlan(msgspec.structs.replace(plan.spec, stage=stages), arrays)))
