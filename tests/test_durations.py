"""Who has passed its budget, on machines of any speed; and what long runs write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import durations, long_run
from tests.durations import everywhere, grown, seconds_of, speed
from tests.record import ROOT, Run, last_run
from tests.selection import LONG

BUDGET = {"a.py": 10.0, "b.py": 20.0, "c.py": 30.0, "tiny.py": 0.1}


@pytest.mark.parametrize("factor", [0.5, 1.0, 7.0])
def test_a_slow_machine_is_no_slow_test(factor: float) -> None:
    here = {name: factor * seconds for name, seconds in BUDGET.items()}
    assert speed(BUDGET, here) == pytest.approx(factor)
    assert grown(BUDGET, here, factor) == {}
    here["b.py"] *= 1.4
    assert grown(BUDGET, here, factor) == {}
    here["b.py"] *= 1.5
    assert list(grown(BUDGET, here, speed(BUDGET, here))) == ["b.py"]


def test_a_new_file_has_little() -> None:
    assert grown(BUDGET, {**BUDGET, "new.py": 3.0}, 1.0) == {}
    said = grown(BUDGET, {**BUDGET, "new.py": 9.0}, 1.0)
    assert said == {"new.py": "9.0 s of the record's machine, it has no budget"}


def test_network_tests_have_no_budget() -> None:
    """They run where Mininet is: a record with them would be of that machine."""
    seconds = {**BUDGET, "bmv2_tests/test_racks.py": 100.0}
    assert grown(BUDGET, seconds, 1.0) == {}
    assert everywhere(seconds) == BUDGET


def test_a_tiny_file_says_nothing_of_the_machine() -> None:
    assert speed(BUDGET, {"a.py": 10.0, "tiny.py": 3.0}) == 1.0
    assert speed({}, {"a.py": 10.0}) == 1.0


def test_the_record_keeps_to_its_total_and_has_every_file() -> None:
    record = durations.read()
    assert sum(record.values()) <= durations.TOTAL_S
    assert [name for name in record if not (ROOT / name).is_file()] == []


def test_durations_of_a_report_are_added_up() -> None:
    report = (
        "== slowest\n1.50s call     tests/a.py::test_b[x y]\n0.25s setup    tests/a.py::test_c\n"
    )
    assert seconds_of(report + "FAILED tests/a.py::test_b\n") == {"tests/a.py": 1.75}


CHOSEN = ("--lf", "test_it.py", "test_it.py::test_two", "-ktwo", "--deselect=x")
"""Those that failed, again and alone, are no run of the tests, nor are some that somebody names."""


def pytest_in(folder: Path, *runs: tuple[str, ...]) -> str:
    """What runs of pytest with these options say, one after the other in one interpreter."""
    code = f"import pytest\nfor run in {runs!r}: pytest.main([*run, '--rootdir={folder}'])"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    ).stdout


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_leaves_its_record(tmp_path: Path, workers: int) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_one(): pass\ndef test_two(): assert False\n"
        "@pytest.mark.long\ndef test_three(): pass\n"
    )
    said = pytest_in(tmp_path, ("-n", str(workers)))
    assert said.count("1 tests: they take long: make test-long runs them") == 1, said
    run = last_run(tmp_path / ".pytest_cache/v/ina/run")
    assert run is not None
    assert (run.outcomes, run.workers) == ({"passed": 1, "failed": 1}, workers or 1)
    assert list(run.seconds) == ["test_it.py"]
    assert list(run.not_run.values()) == [1]
    assert not run.is_long
    if not workers or LONG:
        said = pytest_in(tmp_path, *((few,) for few in CHOSEN))
        assert said.count("1 failed") == len(CHOSEN), said
        assert last_run(tmp_path / ".pytest_cache/v/ina/run") == run


def test_the_last_long_run_takes_the_place_of_the_one_before() -> None:
    run = Run(True, 2, 3661.0, {"passed": 5, "failed": 1}, {"no bmv2": 7}, {})
    page = f"# A\n\n{long_run.BEGIN}\nold\n{long_run.END}\n\nend\n"
    rows = list(long_run.table(run, "abc", "2026-11-24", "2 cores"))
    once = long_run.written(page, iter(rows))
    assert "old" not in once
    assert "| took | 61 min 1 s, 2 processes |" in once
    assert "| not run | 7: no bmv2 |" in once
    assert long_run.written(once, iter(rows)) == once
    assert once.endswith("\n\nend\n")


def test_the_page_has_a_place_for_it() -> None:
    text = long_run.PAGE.read_text()
    assert text.index(long_run.BEGIN) < text.index(long_run.END)


def test_what_makes_the_record_writes_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "RECORD", tmp_path / "durations.json")
    assert durations.write({"b.py": 2.0, "a.py": 1.5}) == "durations.json: 2 files, 4 s"
    assert durations.read() == {"a.py": 1.5, "b.py": 2.0}
    assert list(json.loads((tmp_path / "durations.json").read_text())) == ["a.py", "b.py"]
