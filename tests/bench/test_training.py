"""``ina bench training``: trainings in several ways, what is said of them, and how one goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.bench import training
from ina.bench.report import rows_of
from ina.bench.training import DENSE, TrainingRecord, TrainingRun
from ina.bench.training_state import TrainingState
from ina.errors import InvalidInputError
from tests.bench.command import bench
from tests.worlds.processes.command import inside

RUN = TrainingRun("gpt2", 4, "loopback", 100, DENSE, 1)
LOSSES = [5.0 - number / 25 for number in range(50)]


def record(way: str, seed: int, test_loss: float, **more: Any) -> TrainingRecord:
    run = replace(RUN, way=way, seed=seed)
    found = TrainingRecord(run, LOSSES, test_loss, None, 0.1, 1000.0, 0)
    return replace(found, **more)


def records(way: str, *test_losses: float) -> list[TrainingRecord]:
    return [record(way, seed, loss) for seed, loss in enumerate(test_losses, 1)]


DENSE_RECORDS = records(DENSE, 2.0, 2.02, 1.99)


@pytest.mark.parametrize(
    ("losses", "wanted"),
    [
        ((2.01, 2.03, 2.0), "seeds"),
        ((1.98, 2.0, 1.97), "seeds"),
        ((2.035, 2.055, 2.025), "near"),
        ((1.965, 1.985, 1.955), "near"),
        ((2.1, 2.1, 2.1), "worse"),
        ((1.9, 1.9, 1.9), "better"),
        ((2.01,), "seeds"),
    ],
)
def test_a_way_is_judged_by_what_the_seeds_differ(losses: tuple[float, ...], wanted: str) -> None:
    assert training.verdict(records("16", *losses), DENSE_RECORDS) == wanted


def test_one_seed_says_nothing_of_their_spread() -> None:
    dense = DENSE_RECORDS[:1]
    assert training.verdict(records("16", 2.0), dense) == "near"
    assert training.verdict(records("16", 2.1), dense) == "worse"
    assert training.verdict([record("16", 2, 2.0)], dense) is None
    assert training.verdict(dense, dense) == "dense"


def test_a_row_compares_seed_by_seed() -> None:
    others = [record("16", 1, 2.02, wrong=1), record("16", 2, 2.0402, sent_bytes=None)]
    dense, row = training.summary([*DENSE_RECORDS, *others])
    assert (dense.off, dense.verdict, dense.seeds) == (None, "dense", 3)
    assert row.off == pytest.approx(0.01)
    assert row.off_low == pytest.approx(0.01)
    assert row.test_spread == pytest.approx(0.0202)
    assert (row.sent_bytes, row.wrong, row.test_accuracy) == (1000.0, 1, None)
    assert row.loss == pytest.approx(sum(LOSSES[-5:]) / 5)
    assert row.curve[0] == (2, 5.0, 5.0, 5.0)
    assert row.curve[-1].x == RUN.steps
    (ratio,) = training.ratios([dense, row])
    assert ratio.name == "gpt2 n=4 float32/16"
    assert ratio.value == pytest.approx(1 / 1.01)


@given(st.integers(1, 3000))
def test_pieces_are_all_steps_once(steps: int) -> None:
    found = training.pieces(steps)
    assert (found[0].start, found[-1].stop) == (0, steps)
    assert all(one.stop == other.start for one, other in pairwise(found))
    sizes = {piece.stop - piece.start for piece in found}
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1


def test_curves_have_bands_and_stand_beside_those_of_float32() -> None:
    figure = pytest.importorskip("ina.bench.figure")
    half = [loss / 2 for loss in LOSSES]
    rows = training.summary([*DENSE_RECORDS, record("16", 1, 2.0, losses=half)])
    shown = json.loads(json.dumps(rows_of(rows)))  # as a saved report has them
    made = figure.figure_of(training.panels(shown), "title")
    loss, relative = made.axes
    assert [line.get_label() for line in loss.lines] == [DENSE, "16"]
    assert len(loss.collections) == 2
    assert list(relative.lines[1].get_ydata()) == pytest.approx([0.5] * 50)
    assert relative.get_ylim()[0] > 0
    assert made.get_suptitle() == "title\nbands: all seeds"


def test_what_is_over_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state = TrainingState(path)
    assert state.done == {}
    for one in DENSE_RECORDS:
        state.add(one)
    assert list(TrainingState(path).done.values()) == DENSE_RECORDS
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match="no state of ina bench training"):
        TrainingState(path)


def test_trains_what_is_not_done_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with what is done no process starts."""
    pytest.importorskip("sklearn")
    arguments = [
        *("training", "--model=digits", "--workers=2", "--ways=float32,lowbit8", "--steps=3"),
        *("--seeds=1", f"--state={tmp_path / 'state.json'}", "--json"),
    ]
    ran = bench(*arguments)
    assert ran.code == 0, ran.err
    assert ran.left == []
    document = json.loads(ran.out)
    dense, lowbit = document["rows"]
    assert (dense["verdict"], lowbit["verdict"]) == ("dense", "near")
    assert dense["loss"] == pytest.approx(lowbit["loss"], rel=0.01)
    assert dense["loss"] != lowbit["loss"]
    assert lowbit["sent_bytes"] < dense["sent_bytes"] / 3
    assert (document["wrong"], len(dense["curve"])) == (0, 3)
    monkeypatch.setattr(training, "measure", None)
    again = inside(capsys, "bench", *arguments)
    assert json.loads(again.out)["rows"] == document["rows"]


def test_all_ways_are_there() -> None:
    ways = pytest.importorskip("ina.bench.torch.training_ways")
    tasks = pytest.importorskip("ina.bench.torch.training_tasks")
    assert list(ways.PREPARE) == list(training.WAYS)
    assert tuple(tasks.TASKS) == training.MODELS


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--model=x", "error: --model x: want some of digits, gpt2"),
        ("--ways=float32,x", "error: --ways x: want some of float32"),
        ("--workers=1", "error: --workers 1: want integers from 2"),
    ],
)
def test_wrong_input_is_one_line(
    argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "training", argument)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith(message)
