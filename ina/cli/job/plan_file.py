"""A job that is not submitted yet: the file and the options of ``ina job plan``, as one request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ina.cli.job.memory import bytes_of, deadline_unix_s
from ina.document import DocumentError, convert
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


OPTIONS = {
    "workers": "--workers",
    "like": "--like",
    "bytes": "--bytes",
    "compute_s": "--compute",
    "overlap_s": "--overlap",
    "round_trip_us": "--round-trip",
    "link_gbit": "--link",
    "slots": "--slots",
    "tenant": "--tenant",
    "priority": "--priority",
    "deadline": "--deadline",
    "steps": "--steps",
}
"""Of the command line, by the key of the file before which each comes."""
_OF_A_STEP = ("compute_s", "overlap_s", "round_trip_us", "link_gbit")


def plan_request(
    path: Path | None, given: Mapping[str, Any], usual: Mapping[str, Any] | None = None
) -> pb2.PlanJobRequest:
    """The job in the file, with what the command line has ``given``, by key, before that.

    ``usual``: where neither says anything, as the environment's tenant. Raises
    :class:`InvalidInputError` with the option, or with the file and the key.
    """
    said = {} if path is None else _read(path)
    if "like" in given or "bytes" in given:  # then the file's word on its steps is not asked for
        said = {key: it for key, it in said.items() if key not in ("like", "bytes", *_OF_A_STEP)}
    plan = msgspec.convert({**(usual or {}), **said, **given}, PlanFile)

    def called(key: str) -> str:
        return OPTIONS[key] if key in given or path is None else f"{path}: {key}"

    _check(path, plan, [*dict.fromkeys([*said, *given])], called)
    return _request(plan, called)


def _read(path: Path) -> dict[str, Any]:
    """What the file says, without defaults."""
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        convert(found, PlanFile)
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from None
    except DocumentError as error:
        raise InvalidInputError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path}: not TOML: {error}") from None
    return found


def _check(
    path: Path | None, plan: PlanFile, said: list[str], called: Callable[[str], str]
) -> None:
    """Raises :class:`InvalidInputError`. ``said``: keys; ``called``: each as the user wrote it."""
    if not (plan.hosts or plan.workers > 0):
        raise InvalidInputError(
            f"{path or 'ina job plan'}: want hosts in a FILE, or workers above 0"
        )
    if plan.hosts and plan.workers not in (0, len(plan.hosts)):
        raise InvalidInputError(
            f"{called('workers')} {plan.workers}: the file has {len(plan.hosts)} hosts, one for"
            " each rank"
        )
    for key in ("slots", "steps", "compute_s", "round_trip_us", "link_gbit"):
        if getattr(plan, key) < 0:
            raise InvalidInputError(f"{called(key)}: {getattr(plan, key):g} is below 0")
    if plan.like and plan.bytes:
        raise InvalidInputError(
            f"{called('like')} and {called('bytes')}: one of them says its steps"
        )
    alone = [called(key) for key in said if key in _OF_A_STEP and not plan.bytes]
    if alone:
        raise InvalidInputError(f"{', '.join(alone)}: of which step? want {called('bytes')}, too")
    if plan.placement and not plan.hosts:
        raise InvalidInputError(f"{called('placement')}: of which hosts? want hosts, too")


def _request(plan: PlanFile, called: Callable[[str], str]) -> pb2.PlanJobRequest:
    request = pb2.PlanJobRequest(
        name=plan.name,
        world_size=plan.workers or len(plan.hosts),
        hosts=plan.hosts,
        placement=plan.placement,
        like=plan.like,
        slots=plan.slots,
        tenant=plan.tenant,
        priority=plan.priority,
        deadline_unix_s=deadline_unix_s(called("deadline"), plan.deadline),
        steps=plan.steps,
    )
    if plan.bytes:
        request.step.compute_s = plan.compute_s
        request.step.overlap_s = plan.compute_s if plan.overlap_s is None else plan.overlap_s
        request.step.bytes = bytes_of(called("bytes"), plan.bytes)
        request.step.round_trip_s = plan.round_trip_us / 1e6
        request.step.line_bytes_per_s = plan.link_gbit * 1e9 / 8
    return request
