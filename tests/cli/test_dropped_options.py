"""An option that a command would not heed, given what else was said, is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.processes.command import inside

CONTROLLER = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fabric make leaf-spine --k 8", "--k: a leaf-spine has none"),
        ("fabric make fat-tree --hosts 8", "--hosts: a fat-tree has none"),
        ("controller run --loss-seed 3", "--loss-seed: it is the embedded switch's"),
        ("controller run --loss-rate 0", "--loss-rate: it is the embedded switch's"),
        ("doctor --tenant vision", "--tenant: it is for testing the way to a switch"),
        (
            f"doctor --controller {CONTROLLER} --job x --host 10.0.0.1",
            "--host: --job only explains",
        ),
    ],
)
def test_an_option_that_would_not_be_heeded_is_refused(
    words: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INA_CONTROLLER", raising=False)
    done = inside(capsys, *words.split())
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_what_the_environment_says_is_no_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there for other programs."""
    monkeypatch.delenv("INA_CONTROLLER", raising=False)
    monkeypatch.setenv("INA_TENANT", "vision")
    assert inside(capsys, "doctor").code == 0


def test_a_picture_has_the_trees_of_the_job_that_was_named(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = ("fabric", "plot", tmp_path / "fabric.svg", "--controller", address)
    assert "2 jobs" in inside(capsys, *words).out
    assert "1 jobs" in inside(capsys, *words, "--job", "train").out
