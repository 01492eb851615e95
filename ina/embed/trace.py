"""What a model has asked for: of each table the rows of each sample, in order.

Three kinds of files are read, told apart by their names:

- ``.npz``: of each table an integer array under its name, of shape (samples,) or (samples, rows a
  bag); or two, ``NAME.ids`` and ``NAME.offsets``, as ``nn.EmbeddingBag`` has them. ``NAME.rows``, a
  number, is how many rows the table has; without it, one more than the highest that is asked for.
- ``.jsonl``: a line for each sample, ``{"user": [7, 3], "item": [1]}``; all have the same tables.
- any other: Criteo's lines, 40 columns with tabs between them: label, 13 integers, 26 ids, each a
  table's. Ids, and their absence, are numbered as they first come.
"""

from __future__ import annotations

import itertools
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.embed.bags import Bags
from ina.embed.errors import InvalidBagsError, NoSuchRowError, TraceError
from ina.embed.sharding import MAX_ROWS

CRITEO_TABLES = 26
_CRITEO_COLUMNS = 40
_PARTS = ("ids", "offsets", "rows")


@dataclass(frozen=True)
class TableTrace:
    """Of one table: bag i is sample i's."""

    name: str
    rows: int
    """Of the table."""
    bags: Bags


@dataclass(frozen=True)
class Trace:
    """Of all tables, which have as many samples."""

    tables: Sequence[TableTrace]

    @property
    def samples(self) -> int:
        """That all tables have."""
        return self.tables[0].bags.count

    def save(self, path: Path) -> None:
        """As ``.npz``. Raises OSError."""
        arrays: dict[str, Any] = {}
        for table in self.tables:
            arrays[f"{table.name}.ids"] = table.bags.rows
            arrays[f"{table.name}.offsets"] = table.bags.offsets[:-1]
            arrays[f"{table.name}.rows"] = np.int64(table.rows)
        np.savez_compressed(path, **arrays)


def load(path: Path, most_samples: int) -> Trace:
    """Read a file of one of the kinds, or so many samples of it.

    Raises TraceError that names file and line; OSError.
    """
    tables = {".npz": _of_npz, ".jsonl": _of_jsonl}.get(path.suffix, _of_criteo)(path, most_samples)
    if not tables:
        raise TraceError(f"{path}: it has no table")
    first = tables[0]
    for table in tables:
        if table.bags.count != first.bags.count:
            raise TraceError(
                f"{path}: table {first.name!r} has {first.bags.count} samples, and"
                f" {table.name!r} {table.bags.count}"
            )
    return Trace(tables)


def table_of(
    name: str, ids: NDArray[np.integer], offsets: NDArray[np.integer] | None, rows: int | None
) -> TableTrace:
    """Of arrays as ``.npz`` has them. Raises InvalidBagsError, NoSuchRowError."""
    if ids.ndim == 2 and offsets is None:
        offsets = np.arange(ids.shape[0]) * ids.shape[1]
        ids = ids.reshape(-1)
    limit = rows if rows is not None else int(ids.max(initial=0)) + 1
    if not 1 <= limit <= MAX_ROWS:
        raise InvalidBagsError(f"{limit} rows: want 1 to {MAX_ROWS}")
    return TableTrace(name, limit, Bags.of(ids, offsets, limit=limit))


def _of_npz(path: Path, most: int) -> list[TableTrace]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if any(not isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a part is no array")
    except (ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise TraceError(f"{path}: it is not an .npz of plain arrays: {error}") from None
    names = dict.fromkeys(map(_table_name, arrays))
    return [_first(_of_arrays(path, name, arrays), most) for name in names]


def _first(table: TableTrace, most: int) -> TableTrace:
    ends = table.bags.offsets[: most + 1]
    return TableTrace(table.name, table.rows, Bags(ends, table.bags.rows[: ends[-1]]))


def _table_name(key: str) -> str:
    name, dot, part = key.rpartition(".")
    return name if dot and part in _PARTS else key


def _of_arrays(path: Path, name: str, arrays: Mapping[str, Any]) -> TableTrace:
    ids = arrays.get(name, arrays.get(f"{name}.ids"))
    if ids is None:
        raise TraceError(f"{path}: table {name!r} has no ids")
    rows = arrays.get(f"{name}.rows")
    if rows is not None and (rows.ndim != 0 or rows.dtype.kind not in "iu"):
        raise TraceError(f"{path}: {name}.rows: {rows.dtype} {rows.shape}: want an integer")
    try:
        return table_of(
            name, ids, arrays.get(f"{name}.offsets"), None if rows is None else int(rows)
        )
    except (InvalidBagsError, NoSuchRowError) as error:
        raise TraceError(f"{path}: table {name!r}: {error}") from None


def _of_jsonl(path: Path, most: int) -> list[TableTrace]:
    samples: dict[str, list[list[int]]] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(itertools.islice(lines, most), start=1):
            sample = _sample(path, number, line)
            if number == 1:
                samples = {name: [] for name in sample}
            if sample.keys() != samples.keys():
                raise TraceError(f"{path}:{number}: want the tables of the first line")
            for name, rows in sample.items():
                samples[name].append(rows)
    found = []
    for name, bags in samples.items():
        counts = np.array([len(bag) for bag in bags], np.int64)
        ids = np.array([row for bag in bags for row in bag], np.int64)
        found.append(table_of(name, ids, np.cumsum(counts) - counts, None))
    return found


def _sample(path: Path, number: int, line: str) -> dict[str, list[int]]:
    try:
        sample: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}:{number}: {error}") from None
    is_right = isinstance(sample, dict) and all(
        isinstance(rows, list) and all(type(row) is int and 0 <= row < MAX_ROWS for row in rows)
        for rows in sample.values()
    )
    if not is_right:
        raise TraceError(f'{path}:{number}: want {{"table": [row, ..], ..}}')
    found: dict[str, list[int]] = sample
    return found


def _of_criteo(path: Path, most: int) -> list[TableTrace]:
    numbers: list[dict[str, int]] = [{} for _ in range(CRITEO_TABLES)]
    samples: list[list[int]] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(itertools.islice(lines, most), start=1):
            columns = line.rstrip("\n").split("\t")
            if len(columns) != _CRITEO_COLUMNS:
                raise TraceError(f"{path}:{number}: {len(columns)} columns: want {_CRITEO_COLUMNS}")
            ids = zip(numbers, columns[-CRITEO_TABLES:], strict=True)
            samples.append([known.setdefault(text, len(known)) for known, text in ids])
    if not samples:
        return []
    table = np.array(samples, np.int64).T
    return [
        table_of(f"c{i + 1}", np.ascontiguousarray(ids), None, None) for i, ids in enumerate(table)
    ]
