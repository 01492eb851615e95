"""A job that is not submitted yet, as a TOML file: what ``ina job plan FILE`` reads."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from ina.cli.job.memory import bytes_of, deadline_unix_s
from ina.errors import InvalidInputError
from ina.rpc import controller_pb2 as pb2

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]


class PlanFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    name: str = "planned"
    hosts: tuple[str, ...] = ()
    """By rank, IPv4 addresses; without: how many ``workers``."""
    workers: int = 0
    bytes: str = ""
    """That a worker sends in a step, as 100M; without: not known."""
    compute_s: float = 0.0
    overlap_s: float | None = None
    """Of the computation, while sums are under way; without: all of it."""
    round_trip_us: float = 50.0
    link_gbit: float = 0.0
    """Of a worker, for what its slots are worth; 0: not known."""
    placement: str = ""
    slots: int = 0
    tenant: str = ""
    priority: int = 0
    deadline: str = ""
    steps: int = 0
    like: str = ""
    """A running job whose steps it has."""


def read_plan(path: Path) -> pb2.PlanJobRequest:
    """Raises :class:`InvalidInputError` with the file and the key."""
    try:
        file = msgspec.convert(tomllib.loads(path.read_text("utf-8")), PlanFile)
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{path}: {error}") from None
    except ValueError as error:
        raise InvalidInputError(f"{path}: not TOML: {error}") from None
    if not (file.hosts or file.workers > 0):
        raise InvalidInputError(f"{path}: want hosts, or workers above 0")
    for key in ("slots", "steps", "compute_s", "round_trip_us", "link_gbit"):
        if getattr(file, key) < 0:
            raise InvalidInputError(f"{path}: {key}: {getattr(file, key):g} is below 0")
    request = pb2.PlanJobRequest(
        name=file.name,
        world_size=file.workers or len(file.hosts),
        hosts=file.hosts,
        placement=file.placement,
        like=file.like,
        slots=file.slots,
        tenant=file.tenant,
        priority=file.priority,
        deadline_unix_s=deadline_unix_s(file.deadline),
        steps=file.steps,
    )
    if file.bytes:
        request.step.compute_s = file.compute_s
        request.step.overlap_s = file.compute_s if file.overlap_s is None else file.overlap_s
        request.step.bytes = bytes_of(f"{path}: bytes", file.bytes)
        request.step.round_trip_s = file.round_trip_us / 1e6
        request.step.line_bytes_per_s = file.link_gbit * 1e9 / 8
    return request
