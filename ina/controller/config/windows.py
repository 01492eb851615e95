"""The part of the configuration that says how jobs' windows are: algorithms, weights, caps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ina.congestion import Congestion, CongestionError

if TYPE_CHECKING:
    from ina.controller.config.tables import Config

CongestionTable = dict[str, str | int | float]
"""``algorithm``, and options of it by their names, as Congestion.from_table reads them."""
MAX_WEIGHT = 1e6
Weight = Annotated[float, Meta(gt=0, le=MAX_WEIGHT)]
RateGbit = Annotated[float, Meta(ge=0, le=1e6)]
"""Of a link, each way, in Gbit/s of packets with all their headers; 0: not known."""


class WindowsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Caps of windows, for jobs that share links or slots."""

    caps: Literal["none", "max-min"] = "none"
    """``max-min``: a worker has no more in flight than its job's share of the links takes, where
    others share them. ``none``: the windows' own algorithms alone."""
    slack: Annotated[float, Meta(ge=1, le=100)] = 2.0
    """A cap is so many times what the share takes in the shortest round trip."""
    least_packets: Annotated[int, Meta(ge=1, le=1 << 15)] = 8
    """No cap is below."""


class JobRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What holds for jobs whose name fits."""

    name: str
    """A pattern: ``*`` any characters, ``?`` one, ``[abc]`` one of these."""
    weight: Weight | None = None
    """None: its tenant's."""
    congestion: CongestionTable | None = None
    """None: its tenant's, or the one of all."""


def windows_problems(config: Config) -> Iterator[tuple[str, str]]:
    """As (key, problem)."""
    tables: dict[str, Mapping[str, Any] | None] = {"congestion": config.congestion}
    for name, tenant in config.tenants.items():
        tables[f"tenants.{name}.congestion"] = tenant.congestion
    seen: dict[str, int] = {}
    for index, rule in enumerate(config.job_rules):
        tables[f"job[{index}].congestion"] = rule.congestion
        if not rule.name:
            yield f"job[{index}].name", "empty: no job is called so; * is any"
        former = seen.setdefault(rule.name, index)
        if former != index:
            yield f"job[{index}].name", f"{rule.name!r} is job[{former}]'s, too, which is first"
    for key, table in tables.items():
        try:
            Congestion.from_table(table or {})
        except CongestionError as error:
            yield key, str(error)
