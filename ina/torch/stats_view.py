"""A group's counters as a table of text, for ``print(ina.torch.stats())``."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ina.units import size_text, time_text

if TYPE_CHECKING:
    from ina.torch.stats import GroupStats

_WIDTH = 78
_INDENT = "  "
Row = tuple[str, str]


def as_table(stats: GroupStats) -> str:
    """Several lines, at most 78 columns where names allow it. Counters that are 0 come last."""
    network = {
        "all_reduces": stats.network_all_reduces,
        "reduce_scatters": stats.network_reduce_scatters,
        "elements": stats.network_elems,
        "bytes": stats.network_bytes,
    }
    gloo = {**stats.fallback_reasons, **stats.other_collectives}
    rows: list[tuple[str, list[Row]]] = [
        ("through the network", [(name, _value(name, n)) for name, n in network.items()]),
        ("through Gloo", [(name, str(count)) for name, count in gloo.items()] or [("none", "")]),
    ]
    if stats.switch_loss is not None:
        rows.append(("the switch was lost", _rows(stats.switch_loss)))
    rows.append((f"rank {stats.rank}'s packets", _rows(stats.session)))
    if stats.switch is not None:
        rows.append((f"the switch in this process: {stats.switch['program']}", _ports(stats)))
    head = f"job {stats.job}, rank {stats.rank} of {stats.world_size}"
    lines = [f"{head}, controller {stats.controller}"]
    wide = max(len(name) for _, part in rows for name, _ in part)
    for title, part in rows:
        lines += ["", title]
        lines += [f"{_INDENT}{name:<{wide}}  {value}".rstrip() for name, value in part]
    if zero := [_name(name) for name, value in stats.session.items() if _is_zero(value)]:
        lines += ["", *textwrap.wrap(f"0: {', '.join(zero)}", _WIDTH, subsequent_indent="   ")]
    return "\n".join(lines)


def _ports(stats: GroupStats) -> list[Row]:
    """What the switch counted; counters of several ranks or reasons have one line each."""
    assert stats.switch is not None
    counters: Sequence[Mapping[str, Any]] = stats.switch["counters"]
    rows = [(name, value) for name, value in _rows(stats.switch) if name != "program"]
    for counter in counters:
        if counter["packets"]:
            what = counter["label"].removeprefix(f"job {stats.job}").strip()
            name = " ".join(filter(None, [counter["name"], what]))
            rows.append((name, f"{counter['packets']} packets, {size_text(counter['bytes'])}"))
    return rows


def _rows(values: Mapping[str, Any]) -> list[Row]:
    return [
        (_name(name), _value(name, value))
        for name, value in values.items()
        if not isinstance(value, list) and not _is_zero(value)
    ]


def _is_zero(value: Any) -> bool:
    return not isinstance(value, bool | str) and value == 0


def _name(name: str) -> str:
    if name == "unix_s":
        return "when"
    for unit in ("_ns", "_s"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def _value(name: str, value: Any) -> str:
    """By the unit in the name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and "bytes" in name.split("_"):
        return size_text(value)
    if name == "unix_s":
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if isinstance(value, str):
        return value
    if name.endswith("_ns"):
        return time_text(value / 1e9)
    return time_text(value) if name.endswith("_s") else str(value)
