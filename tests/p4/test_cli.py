"""ina p4: output for people and programs, and one line for wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ina.cli.main import run
from ina.p4 import compiled, names

COUNTER = Path(__file__).parents[2] / "examples/p4/counter.p4info.txtpb"


def test_info_lists_what_the_control_plane_can_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["p4", "info", "--values", "64"]) == 0
    text = capsys.readouterr().out
    for expected in (names.JOBS, names.ADMIT_JOB, names.DROPS, "slot_round_bitmap", "value_63"):
        assert expected in text
    assert "value_12 " not in text  # the values' registers are one line


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["p4", "info", str(compiled(256).p4info), "--json"]) == 0
    program = json.loads(capsys.readouterr().out)
    assert program["name"] == "pool_v1model_256"
    assert len(program["registers"]) == 7 + 256
    assert {"name": "job", "bits": 16, "match": "exact"} in program["tables"][3]["keys"]


def test_info_of_a_program_that_only_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["p4", "info", str(COUNTER), "--json"]) == 0
    program = json.loads(capsys.readouterr().out)
    assert program["name"] == "counter"
    assert [counter["name"] for counter in program["counters"]] == ["CounterIngress.per_port"]
    assert program["tables"] == []


def test_unpack_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["p4", "unpack", "--mode", "shared", "--values", "64", "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    out = tmp_path / "a" / "b"
    assert run(["p4", "unpack", "--mode", "shared", "--values", "64", "--out", str(out)]) == 0
    assert f"{out / 'shared_v1model_64.json'} " in capsys.readouterr().out
    assert [Path(row["file"]).name for row in kept] == sorted(path.name for path in out.iterdir())
    for row in kept:
        content = (out / Path(row["file"]).name).read_bytes()
        assert content == Path(row["file"]).read_bytes()
        assert len(content) == row["bytes"]


@pytest.mark.p4c
def test_compile_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--values", "64", "--out", str(tmp_path)]
    assert run(["p4", "compile", "--mode", "pool", *where, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert [Path(row["file"]).name for row in written] == [
        "pool_v1model_64.json",
        "pool_v1model_64.p4info.txtpb",
    ]
    assert all(Path(row["file"]).stat().st_size == row["bytes"] for row in written)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["info", "--values", "3"],
            "no compiled program with 3 values a packet: have 64, 256, 360 and 1024",
        ),
        (["info", "--mode", "fast"], "--mode fast: there are programs for pool and shared"),
        (["unpack", "--values", "64", "--out", __file__], f"--out {__file__}: File exists"),
        (["compile", "--mode", "x"], "--mode x: there are programs for pool and shared"),
        (["info", "/nowhere.txtpb"], "/nowhere.txtpb: no such file"),
        (["info", __file__], "not a P4Info"),
        (["compile", "--values", "3", "--out", "/nowhere"], "--values 3: there are builds for 64,"),
        (["compile", "--values", "x"], "Invalid value for '--values'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["p4", *arguments]) == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert len(stderr.splitlines()) == 1


def test_compile_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INA_P4C", str(tmp_path / "p4c"))
    assert run(["p4", "compile", "--values", "64", "--out", str(tmp_path)]) == 2
    assert "is not an executable file" in capsys.readouterr().err
