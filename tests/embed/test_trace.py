"""Files of look-ups: what is read, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.embed.errors import TraceError
from ina.embed.generated import generated
from ina.embed.trace import Trace, load

ALL = 1 << 40


def bags_of(trace: Trace, name: str) -> list[list[int]]:
    (table,) = (table for table in trace.tables if table.name == name)
    return [part.tolist() for part in np.split(table.bags.rows, table.bags.offsets[1:-1])]


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_arrays_of_three_forms(tmp_path: Path) -> None:
    path = npz(
        tmp_path / "a.npz",
        **{"one": np.array([4, 0, 2]), "two": np.array([[1, 1], [0, 3], [2, 2]])},
        **{"bag.ids": np.array([5, 6, 7]), "bag.offsets": np.array([0, 2, 2])},
        **{"bag.rows": np.array(90)},
    )
    trace = load(path, ALL)
    assert {table.name: table.rows for table in trace.tables} == {"one": 5, "two": 4, "bag": 90}
    assert bags_of(trace, "one") == [[4], [0], [2]]
    assert bags_of(trace, "two") == [[1, 1], [0, 3], [2, 2]]
    assert bags_of(trace, "bag") == [[5, 6], [], [7]]
    assert bags_of(load(path, 2), "bag") == [[5, 6], []]


def test_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"user": [7, 3], "item": [1]}\n{"item": [], "user": [0]}\n')
    trace = load(path, ALL)
    assert bags_of(trace, "user") == [[7, 3], [0]]
    assert bags_of(trace, "item") == [[1], []]
    assert load(path, 1).samples == 1


def test_lines_of_criteo(tmp_path: Path) -> None:
    path = tmp_path / "day_0"
    ids = (["ff"] * 26, [""] * 26, ["ff"] * 25 + ["0a"])
    path.write_text("".join("\t".join(["1", *["2"] * 13, *line]) + "\n" for line in ids))
    trace = load(path, ALL)
    assert [table.name for table in trace.tables] == [f"c{i + 1}" for i in range(26)]
    assert bags_of(trace, "c1") == [[0], [1], [0]]
    assert bags_of(trace, "c26") == [[0], [1], [2]]


def test_what_is_generated_is_read_as_it_was_and_follows_its_law(tmp_path: Path) -> None:
    made = generated([(1000, 1), (7, 3)], 20_000, 1.0, seed=3)
    made.save(tmp_path / "a.npz")
    read = load(tmp_path / "a.npz", ALL)
    for one, other in zip(made.tables, read.tables, strict=True):
        assert (one.name, one.rows) == (other.name, other.rows)
        assert np.array_equal(one.bags.rows, other.bags.rows)
        assert np.array_equal(one.bags.offsets, other.bags.offsets)
    often = np.sort(np.bincount(made.tables[0].bags.rows, minlength=1000))[::-1]
    assert often[0] / often[9] == pytest.approx(10, rel=0.25)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", "{", r"a.jsonl:1: "),
        ("a.jsonl", '{"a": [1]}\n{"b": [1]}', r"a.jsonl:2: want the tables of the first line"),
        ("a.jsonl", '{"a": [-1]}', r'a.jsonl:1: want {"table": '),
        ("a.jsonl", '{"a": [true]}', r'a.jsonl:1: want {"table": '),
        ("a.jsonl", "", r"it has no table"),
        ("a.npz", "PK", r"a.npz: it is not an .npz of plain arrays"),
        ("day_0", "1\t2\n", r"day_0:1: 2 columns: want 40"),
    ],
)
def test_files_that_are_no_trace(name: str, content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(TraceError, match=said):
        load(path, ALL)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"a": np.array([1.5])}, "table 'a': rows: float64"),
        ({"a": np.array([9]), "a.rows": np.array(9)}, "table 'a': row 9: the table has rows 0 to"),
        ({"a": np.array([9]), "a.rows": np.array(0)}, "table 'a': 0 rows: want 1"),
        ({"a": np.array([9]), "a.rows": np.array([9])}, "a.rows: int64"),
        ({"a": np.array([1]), "b": np.array([1, 2])}, "'a' has 1 samples, and 'b' 2"),
        ({"a.offsets": np.array([0])}, "table 'a' has no ids"),
        ({"a.ids": np.array([1]), "a.offsets": np.array([1])}, "the first is 1, want 0"),
        ({"a": np.array([{}])}, "it is not an .npz of plain arrays"),
    ],
)
def test_arrays_that_are_no_trace(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=said):
        load(npz(tmp_path / "a.npz", **arrays), ALL)
