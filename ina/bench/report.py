"""What a benchmark found, as one JSON document of a stable form (``SCHEMA``)."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from ina import __version__
from ina.errors import InvalidInputError

SCHEMA = "ina-bench/1"


class Machine(msgspec.Struct, frozen=True):
    """Where it was measured."""

    cpu: str
    cores: int
    kernel: str
    load: float
    """Of the last minute when the report was made: what else ran counts too."""
    date: str
    """UTC, ISO 8601."""


class Ratio(msgspec.Struct, frozen=True):
    """A number that two machines can compare: of two times of one run. More is better."""

    name: str
    value: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one benchmark."""

    bench: str
    settings: dict[str, Any]
    rows: list[dict[str, Any]]
    ratios: list[Ratio]
    wrong: int
    """Values that were not what they must be, in all rows; anything but 0 spoils the run."""
    notes: list[str] = []
    """What a reader must know: what a limit counts, over what each peer ran."""
    schema: str = SCHEMA
    ina: str = __version__
    machine: Machine = msgspec.field(default_factory=lambda: machine())


def machine() -> Machine:
    """This one, now."""
    return Machine(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        load=round(os.getloadavg()[0], 2),
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    except OSError:
        pass
    return platform.machine()


def rows_of(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Dataclasses as plain data."""
    return [asdict(row) for row in rows]


def save(report: Report, path: Path) -> None:
    """Writes the document. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def load(path: Path) -> Report:
    """Raises :class:`InvalidInputError` that says what is wrong with the file."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInputError(f"{path}: not a report of ina bench: {error}") from None
    if found.schema != SCHEMA:
        raise InvalidInputError(f"{path}: form {found.schema!r}, want {SCHEMA!r}")
    return found
