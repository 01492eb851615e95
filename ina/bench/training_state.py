"""Runs that are over, in a file: a measurement that was cut goes on where it stopped."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ina.bench.training import TrainingRecord, TrainingRun
from ina.errors import InvalidInputError


class TrainingState:
    """What came of runs, as a JSON list that is written anew with each."""

    def __init__(self, path: Path | None) -> None:
        """``path``: made with the first run; None: nothing is kept beyond this process.

        Raises :class:`InvalidInputError`: it cannot be read, or is something else.
        """
        self._path = path
        self.done: dict[TrainingRun, TrainingRecord] = {}
        if path is None or not path.exists():
            return
        try:
            found = msgspec.json.decode(path.read_bytes(), type=list[TrainingRecord])
        except OSError as error:
            raise InvalidInputError(f"{path}: {error.strerror}") from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidInputError(f"{path}: no state of ina bench training: {error}") from None
        self.done = {record.run: record for record in found}

    def add(self, record: TrainingRecord) -> None:
        """One more. Raises OSError."""
        self.done[record.run] = record
        if self._path is not None:
            beside = self._path.with_name(self._path.name + ".new")
            beside.write_bytes(msgspec.json.encode(list(self.done.values())))
            os.replace(beside, self._path)
