"""What a group has done so far: plain data, and a table when it is printed."""

from __future__ import annotations

import dataclasses
import json
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.units import size_text, time_text

_WIDTH = 78
_INDENT = "  "
Row = tuple[str, str]


@dataclass(frozen=True)
class GroupStats:
    """Counters of one process group in this process, since the group was made."""

    job: str
    rank: int
    world_size: int
    controller: str
    network_all_reduces: int
    """Tensors of an all_reduce that the network summed."""
    network_reduce_scatters: int
    """Tensors of a reduce_scatter that the network summed."""
    network_elems: int
    """Elements that were summed: those that this rank gave."""
    network_bytes: int
    """Size of those elements in their own dtype."""
    fallbacks: int
    """Tensors that went through Gloo, of collectives that the network does."""
    fallback_reasons: dict[str, int]
    """``"all_reduce MAX of float32"`` to the number of them."""
    other_collectives: dict[str, int]
    """Collectives that the network does not do, by name; through Gloo on the CPU."""
    session: dict[str, Any]
    """Packets, bytes and retransmissions of this worker: see :class:`ina.host.SessionStats`."""
    switch: dict[str, Any] | None
    """Counters of the embedded switch, in the process that runs it; else None."""
    switch_loss: dict[str, Any] | None
    """How the group came to go on over Gloo, the last time, and when it went back to the network:
    see :class:`ina.torch.fallback.SwitchLoss`."""
    switch_returns: int = 0
    """How often the group has gone back to the network."""
    sparse_all_reduces: int = 0
    """Tensors of which blocks, or rows, that are zero on all ranks were not sent."""
    sparse_blocks: int = 0
    """Blocks, or rows, of those tensors."""
    sparse_own_blocks: int = 0
    """Of those, not zero on this rank."""
    sparse_union_blocks: int = 0
    """Of those, not zero on some rank: what was sent."""
    network_reduces: int = 0
    """Tensors of a reduce that the network summed."""
    network_all_gathers: int = 0
    """Tensors of an all_gather that the network moved."""
    network_broadcasts: int = 0
    """Tensors of a broadcast that the network moved."""
    network_barriers: int = 0
    """Barriers through the network."""
    network_moved_bytes: int = 0
    """Of all_gathers, what all ranks gave; of broadcasts, what the root gave."""

    @property
    def density(self) -> float:
        """Of sparse all_reduces: the part of their blocks that are not zero on this rank."""
        return self.sparse_own_blocks / max(1, self.sparse_blocks)

    @property
    def union(self) -> float:
        """Of sparse all_reduces: the part of their blocks that was sent."""
        return self.sparse_union_blocks / max(1, self.sparse_blocks)

    def __str__(self) -> str:
        return _table(self)

    def write(self, path: Path) -> None:
        """Write as JSON; raises OSError."""
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n")


def _table(stats: GroupStats) -> str:
    """Several lines, at most 78 columns where names allow it. Counters that are 0 come last."""
    network: dict[str, int | str] = {
        "all_reduces": stats.network_all_reduces,
        "reduce_scatters": stats.network_reduce_scatters,
        "elements": stats.network_elems,
        "bytes": stats.network_bytes,
    }
    network |= {
        name: count
        for name, count in (
            ("reduces", stats.network_reduces),
            ("all_gathers", stats.network_all_gathers),
            ("broadcasts", stats.network_broadcasts),
            ("barriers", stats.network_barriers),
            ("bytes moved", stats.network_moved_bytes),
        )
        if count
    }
    if stats.sparse_all_reduces:
        network["sparse all_reduces"] = stats.sparse_all_reduces
        network["blocks of those not zero here"] = f"{stats.density:.2%}"
        network["blocks of those sent"] = f"{stats.union:.2%}"
    gloo = {**stats.fallback_reasons, **stats.other_collectives}
    rows: list[tuple[str, list[Row]]] = [
        ("through the network", [(name, _value(name, n)) for name, n in network.items()]),
        ("through Gloo", [(name, str(count)) for name, count in gloo.items()] or [("none", "")]),
    ]
    if stats.switch_loss is not None:
        lost = _rows(stats.switch_loss)
        lost += _rows({"returns": stats.switch_returns})
        rows.append(("the switch was lost", lost))
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
    name = name.removesuffix("_unix_s") if name.endswith("_unix_s") else name
    for unit in ("_ns", "_s"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def _value(name: str, value: Any) -> str:
    """By the unit in the name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and "bytes" in name.replace(" ", "_").split("_"):
        return size_text(value)
    if name.endswith("unix_s"):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if isinstance(value, str):
        return value
    if name.endswith("_ns"):
        return time_text(value / 1e9)
    return time_text(value) if name.endswith("_s") else str(value)
