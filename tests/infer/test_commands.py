"""``ina infer`` as people and scripts use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.cli.main import run
from ina.infer.errors import ServiceError
from ina.infer.files import write_plan
from ina.infer.local import LocalNodes, LocalOptions
from ina.infer.plan import InferencePlan
from ina.infer.reference import answers_of
from tests.infer.plans import SPLIT, dense, local, samples_of
from tests.lines import ROOT

Ina = Callable[..., str]


@pytest.fixture
def ina(capsys: pytest.CaptureFixture[str]) -> Ina:
    """A command in this process: what it prints, or says is wrong."""

    def call(*words: object, code: int = 0) -> str:
        got = run(["infer", *map(str, words)])
        printed = capsys.readouterr()
        assert got == code, printed.err
        return printed.err if code == 2 else printed.out

    return call


@contextmanager
def served(folder: Path, *words: object) -> Iterator[dict[str, Any]]:
    """All nodes here; yields the ready line, read as JSON."""
    command = [sys.executable, "-m", "ina", "infer", "serve", str(folder / "plan.toml")]
    command += ["--places", str(folder / "places.json"), "--json", *map(str, words)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env={**os.environ}
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (folder / "log").read_text()
        yield {**json.loads(line), "process": process}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def written(folder: Path, plan: InferencePlan, samples: int = 50) -> np.ndarray[Any, Any]:
    write_plan(folder / "plan.toml", plan)
    asked = samples_of(plan, 1, samples)
    np.save(folder / "samples.npy", asked)
    return asked


@pytest.mark.long
def test_a_plan_is_served_and_asked(ina: Ina, tmp_path: Path) -> None:
    """With its sums in the switch that `serve` starts; a trace says what happened when."""
    plan = dense(SPLIT, 2)
    asked = written(tmp_path, plan)
    (tmp_path / "trace").mkdir()
    with served(tmp_path, "--trace", tmp_path / "trace") as ready:
        assert set(ready["pids"]) == {"a", "b"}
        said = ina(
            *("send", tmp_path / "plan.toml", "--places", tmp_path / "places.json", "--check"),
            *("--samples", tmp_path / "samples.npy", "--batch", 20, "--json"),
            *("--output", tmp_path / "answers.npy"),
        )
        assert json.loads(said)["wrong"] == 0
        assert json.loads(said)["requests"] == 3
        assert np.array_equal(np.load(tmp_path / "answers.npy"), answers_of(plan, asked))
    moments = json.loads((tmp_path / "trace" / f"{plan.spec.nodes[plan.entry]}.json").read_text())
    came = [moment for moment in moments["moments"] if moment["what"] == "came"]
    assert len(came) == 25


@pytest.mark.long
def test_a_node_that_does_not_start_is_named(tmp_path: Path) -> None:
    plan = local(dense(SPLIT, 1))
    nodes = LocalNodes(tmp_path / "none.toml", plan, tmp_path / "places.json", LocalOptions())
    with (
        pytest.raises(ServiceError, match=r"node 'a' did not get ready: error: .*none\.toml"),
        nodes,
    ):
        pass


def test_check_says_what_each_stage_makes(ina: Ina, tmp_path: Path) -> None:
    plan = dense(SPLIT, 2)
    written(tmp_path, plan)
    document = json.loads(ina("check", tmp_path / "plan.toml", "--json"))
    stages = [stage["stage"] for stage in document["stages"]]
    assert stages == ["input", *(stage.name for stage in plan.spec.stage)]
    assert document["digest"] == f"{plan.digest:08x}" or plan.spec.arrays != ""
    assert "sums reach" in ina("check", tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "none.toml"], "none.toml: No such file"),
        (["serve", "{plan}", "--places", "p", "--node", "z"], "--node 'z': the plan has a, b"),
        (["serve", "{plan}", "--places", "p", "--node", "a"], "p: No such file"),
        (["serve", "{plan}", "--places", "p", "--patience-s", "0"], "want 0.1 to 3600"),
        (["serve", "{plan}", "--places", "p", "--loss-rate", "1"], "want 0 to below 1"),
        (["send", "{plan}", "--places", "p", "--samples", "none.npy"], "none.npy: No such file"),
        (["send", "{plan}", "--places", "p", "--samples", "s", "--deadline-s", "0"], "want 0.01"),
        (["places", "{plan}", "a", "-o", "p"], "want NODE=HOST:PORT"),
        (["places", "{plan}", "a=1.2.3.4:5", "-o", "p"], "places of a: want a, b"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], said: str, ina: Ina, tmp_path: Path
) -> None:
    written(tmp_path, dense(SPLIT, 2))
    got = ina(*(word.format(plan=tmp_path / "plan.toml") for word in words), code=2)
    assert said in got
    assert got.count("\n") == 1


def test_quantise_writes_a_plan_and_says_what_it_keeps(ina: Ina, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    weights = {"0.weight": random.normal(size=(16, 8)), "2.weight": random.normal(size=(4, 16))}
    np.savez(tmp_path / "m.npz", **weights)  # type: ignore[arg-type]
    np.save(tmp_path / "x.npy", random.normal(size=(300, 8)))
    said = json.loads(
        ina(
            *("quantise", tmp_path / "m.npz", "--samples", tmp_path / "x.npy", "--json"),
            *("-o", tmp_path / "plan.toml", "--nodes", 2, "--input-bits", 12),
        )
    )
    assert said["same"] > 280
    assert "summed in the switch" in ina("check", tmp_path / "plan.toml")


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["digits", "graph"])
def test_examples(name: str) -> None:
    if name == "digits":
        pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, f"examples/infer/{name}.py", "--loss-rate", "0.01"],
        capture_output=True, text=True, timeout=280, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ": 0 answers differ" in done.stdout
