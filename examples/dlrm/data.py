"""Clicks: lines of Criteo's format, or generated ones that can be learned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from model import DENSE_FEATURES, TABLES

ZIPF = 1.05
"""Of generated ids: few are asked for most of the time, as in advertising."""


@dataclass(frozen=True)
class Clicks:
    """Some samples."""

    dense: torch.Tensor
    """float32, (samples, 13)."""
    ids: torch.Tensor
    """int64, (26, samples)."""
    labels: torch.Tensor
    """float32, (samples,), 0 or 1."""


def generated(rank: int, batch: int, rows: int) -> Iterator[Clicks]:
    """Without end; what is clicked depends on ids and dense features, with some chance in it."""
    weights = np.random.default_rng(1).standard_normal((TABLES, rows)) / math.sqrt(TABLES)
    taste = np.random.default_rng(2).standard_normal(DENSE_FEATURES) / math.sqrt(DENSE_FEATURES)
    shares = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -ZIPF)
    random = np.random.default_rng([3, rank])
    while True:
        ids = np.searchsorted(shares, random.random((TABLES, batch)) * shares[-1])
        dense = random.standard_normal((batch, DENSE_FEATURES))
        score = weights[np.arange(TABLES)[:, None], ids].sum(0) + dense @ taste
        clicked = random.random(batch) < 1 / (1 + np.exp(-2.5 * score))
        yield Clicks(
            torch.from_numpy(dense.astype(np.float32)),
            torch.from_numpy(ids),
            torch.from_numpy(clicked.astype(np.float32)),
        )


def of_criteo(path: Path, rank: int, ranks: int, batch: int, rows: int) -> Iterator[Clicks]:
    """Each `ranks`-th line: label, 13 integers, 26 ids in hexadecimal, with tabs between them.

    Integers x become log(1 + x), ids are taken modulo `rows`, and what is missing is 0. Ends with
    the file; ValueError: a line of other than 40 columns.
    """
    with path.open() as lines:
        own = itertools.islice(enumerate(lines, start=1), rank, None, ranks)
        while some := list(itertools.islice(own, batch)):
            samples = [_sample(path, number, line, rows) for number, line in some]
            labels, dense, ids = zip(*samples, strict=True)
            yield Clicks(
                torch.tensor(dense), torch.tensor(ids).T.contiguous(), torch.tensor(labels)
            )


def _sample(path: Path, number: int, line: str, rows: int) -> tuple[float, list[float], list[int]]:
    columns = line.rstrip("\n").split("\t")
    if len(columns) != 1 + DENSE_FEATURES + TABLES:
        raise ValueError(f"{path}:{number}: {len(columns)} columns: want 40")
    dense = [math.log1p(max(int(one or 0), 0)) for one in columns[1 : 1 + DENSE_FEATURES]]
    ids = [int(one or "0", 16) % rows for one in columns[1 + DENSE_FEATURES :]]
    return float(columns[0]), dense, ids
