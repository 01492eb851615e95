"""What is wrong with tables about windows that types alone cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ina.congestion import Congestion, CongestionError
from ina.controller.config.tables import Config


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
