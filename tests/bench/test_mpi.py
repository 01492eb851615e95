"""Open MPI as a peer: what its ranks say becomes rows, and what fails is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.bench import mpi
from ina.bench.allreduce import AllReduceCase, AllReduceRow, make_measurement
from ina.bench.mpi_worker import _wrong
from ina.bench.spread import spread
from ina.errors import DeadlineError, InaError
from tests.bench.command import bench

CASE = AllReduceCase("float32", 4, "sum", 256, 3, 1.0)
ELEMS = 1 << 14


def gloo(time_s: float) -> AllReduceRow:
    return make_measurement(
        workers=2,
        backend="gloo",
        count=ELEMS,
        times=spread([time_s]),
        wrong=0,
        limit_s=None,
        gloo_s=time_s,
        cpu_s=None,
        transport="tcp",
        case=CASE,
    )


def use_mpirun(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """`script` stands for mpirun."""
    path = folder / "mpirun"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_what_rank_0_says_becomes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"count": ELEMS, "times_s": [0.002, 0.001, 0.003], "cpu_s": [0.004], "wrong": 5}
    asked = tmp_path / "asked"
    use_mpirun(tmp_path, monkeypatch, f"echo \"$@\" > {asked}\necho '{json.dumps(record)}'")
    (row,) = mpi.measure(2, [4 * ELEMS], CASE, [gloo(0.008)])
    assert (row.backend, row.workers, row.size_bytes, row.wrong) == ("mpi", 2, 4 * ELEMS, 5)
    assert row.time_s == 0.002
    assert row.gain == pytest.approx(4.0)
    assert row.cpu_s_per_gb == pytest.approx(0.004 / (4 * ELEMS) * 1e9)
    words = asked.read_text().split()
    assert words[words.index("-n") + 1] == "2"
    assert words[-5:] == ["float32", "sum", "3", "1.0", str(4 * ELEMS)]


def test_an_mpirun_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_mpirun(tmp_path, monkeypatch, "echo no slots >&2; exit 3")
    with pytest.raises(InaError, match="mpirun with 2 workers: no slots"):
        mpi.measure(2, [4 * ELEMS], CASE, [])


def test_an_mpirun_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_mpirun(tmp_path, monkeypatch, "trap '' TERM; sleep 60 & wait; sleep 60")
    monkeypatch.setattr(mpi, "_START_UP_S", -12.9)  # it adds as much for one size
    monkeypatch.setattr(mpi, "_STOP_S", 0.2)
    with pytest.raises(DeadlineError, match=r"mpirun with 2 workers: not done in 0\.1 s"):
        mpi.measure(2, [4 * ELEMS], CASE, [])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_type_without_an_mpi_type_is_told(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "_missing", lambda: "")
    assert mpi.why_not(dtype) == f"MPI has no {dtype}"
    assert mpi.why_not("int32") == ""


class TwoRanks:
    """Rank 0's view of a communicator of two; the sum may be spoilt."""

    rank, size = 0, 2

    def __init__(self, spoil: int) -> None:
        self._spoil = spoil

    def Allreduce(self, array: Any, out: Any) -> None:  # noqa: N802 (mpi4py's name)
        other = ((np.arange(array.size) + 1) % ((1 << 24) // 2)).astype(array.dtype)
        out[:] = array + other
        out[: self._spoil] += 1

    def allreduce(self, value: int, op: object) -> int:
        return value


class Operators:
    SUM = object()


@pytest.mark.parametrize(("spoil", "average"), [(0, False), (0, True), (3, False)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_wrong_sums_are_counted(dtype: str, spoil: int, average: bool) -> None:
    assert _wrong(TwoRanks(spoil), Operators, 100, dtype, average) == spoil


def test_open_mpi_itself() -> None:
    if why := mpi.why_not("float32"):
        pytest.skip(why)
    small = ("--workers=2", "--sizes=64K", "--repeats=3", "--seconds=0.2", "--json")
    ran = bench("allreduce", *small)
    assert ran.code == 0, ran.err
    rows = {row["backend"]: row for row in json.loads(ran.out)["rows"]}
    assert (rows["mpi"]["wrong"], rows["mpi"]["samples"]) == (0, 3)
    assert rows["mpi"]["gain"] == pytest.approx(rows["gloo"]["time_s"] / rows["mpi"]["time_s"])
