"""``ina embed trace`` and ``ina embed plan``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.worlds.processes.command import inside

SMALL = ("--samples", "96", "--most-rows", "200")
JOB = ("--hosts", "2", "--samples", "16", "--dim", "4")


@pytest.fixture
def trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "a.npz"
    assert inside(capsys, "embed", "trace", path, *SMALL).code == 0
    return path


def test_a_plan_says_what_each_cache_leaves(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = inside(capsys, "embed", "plan", trace, *JOB, "--cache", "50,0,100", "--json")
    found = json.loads(done.out)
    assert found["steps"] == 3
    assert len(found["tables"]) == 26
    assert found["all_to_all_bytes"] == 26 * 16 * 4 * 4 / 2
    assert [row["cache"] for row in found["inference"]] == [0, 0.5, 1]
    nothing, half, all_of_it = (row["share"] for row in found["inference"])
    assert 1 > nothing > half >= all_of_it > 0
    assert found["inference"][0]["hits"] is None
    text = inside(capsys, "embed", "plan", trace, *JOB).out
    assert "inference: all_to_all of sums brings a host 0.003 MB a step" in text


def test_a_plan_is_drawn(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "a.svg"
    assert inside(capsys, "embed", "plan", trace, *JOB, "--plot", path).code == 0
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cache", "0,x"), "--cache 0,x: want percents, 0 to 100, as 0,0.1,1"),
        (("--cache", "101"), "--cache 101: want percents"),
        (("--plot", "a.txt"), "--plot a.txt: want a name that ends in"),
        (("--samples", "4096"), "the trace has 96 samples: 2 steps of 2 hosts, 4096 each, need"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], said: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = inside(capsys, "embed", "plan", trace, *JOB, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
