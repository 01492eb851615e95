"""What saved gradients say of a job: their type, how many values, which blocks are not zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ina.errors import InvalidInputError

ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class Gradients:
    """Of a step, of all ranks whose files were given."""

    dtype: str
    """A key of ITEM_BYTES."""
    elems: int
    """Of one rank."""
    density: float
    """Of a rank's blocks, the share that is not zero; the ranks' mean."""
    union: float
    """Of the blocks, the share that some of these ranks has values in."""
    ranks: int

    def union_of(self, workers: int) -> float:
        """As :attr:`union`, of so many: as if the others' blocks differed as these ranks' do."""
        return float(1 - (1 - self.union) ** max(1.0, workers / self.ranks))


def measured(files: Sequence[Path], block_elems: int) -> Gradients:
    """One file a rank, of ``numpy.save`` or ``torch.save``: an array, or tensors in a list or dict.

    Raises :class:`InvalidInputError`: a file is not to be read, or they differ in size or type.
    """
    ranks = [_read(path) for path in files]
    for path, (dtype, zeros) in zip(files, ranks, strict=True):
        if (dtype, zeros.size) != (ranks[0][0], ranks[0][1].size):
            raise InvalidInputError(
                f"{path}: {zeros.size} values of {dtype}, but {files[0]} has"
                f" {ranks[0][1].size} of {ranks[0][0]}: want those of one model"
            )
    own = [_blocks(there, block_elems) for _, there in ranks]
    density = float(np.mean([blocks.mean() for blocks in own]))
    union = float(np.logical_or.reduce(own).mean())
    return Gradients(ranks[0][0], ranks[0][1].size, density, union, len(files))


def _blocks(there: NDArray[np.bool_], block_elems: int) -> NDArray[np.bool_]:
    """Of values that are not zero, which blocks have one; the last may be short."""
    starts = np.arange(0, there.size, block_elems)
    return np.logical_or.reduceat(there, starts)


def _read(path: Path) -> tuple[str, NDArray[np.bool_]]:
    """The type, and which values are not zero."""
    try:
        parts = list(_numpy(path) if path.suffix == ".npy" else _torch(path))
    except InvalidInputError:
        raise
    except Exception as error:  # of two libraries, each with errors of its own
        said = " ".join(str(error).split())[:200]
        raise InvalidInputError(
            f"{path}: no gradients of numpy.save (*.npy) or torch.save: {said}"
        ) from None
    dtypes = sorted({dtype for dtype, _ in parts})
    if len(dtypes) != 1 or dtypes[0] not in ITEM_BYTES:
        found = " and ".join(dtypes) or "no tensors"
        raise InvalidInputError(f"{path}: {found}: want one of {', '.join(ITEM_BYTES)}")
    there = np.concatenate([values for _, values in parts])
    if not there.size:
        raise InvalidInputError(f"{path}: no values")
    return dtypes[0], there


def _numpy(path: Path) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    array = np.load(path)
    yield array.dtype.name, (array != 0).reshape(-1)


def _torch(path: Path) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    from ina.bench.torch import saved  # torch may be absent

    return saved.not_zero(path)
