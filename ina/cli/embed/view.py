"""What ``ina embed plan`` prints for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.columns import Column, percent
from ina.cli.common.columns import view as columns_view
from ina.embed.plan import PlanOrder, TracePlan
from ina.units import size_text

_TABLES = (
    *(Column("table", "name"), Column("rows", "rows"), Column("lies", "lies")),
    *(Column("rows/sample", "bag", 2), percent("by row %", "by_row", 0)),
    Column("vectors/step", "vectors", 1),
)
_CACHES = (
    *(percent("cache %", "cache", 3), Column("room", lambda row: size_text(row.cache_bytes))),
    *(percent("hits %", "hits", 1), Column("MB/step", "received_bytes", 3, 1e-6)),
    *(Column("of all_to_all", "share", 3), Column("counted", "share_counted", 3)),
)
_TRAINING = (
    *(Column("hot rows", "hot_rows"), Column("replicas", lambda row: size_text(row.hot_bytes))),
    *(percent("hits %", "hits", 1), Column("MB/step", "received_bytes", 3, 1e-6)),
    *(Column("of all_to_all", "share", 3), Column("without hot", "share_without_hot", 3)),
)


def view(found: TracePlan, order: PlanOrder) -> RenderableType:
    """Three tables, and what a host has room to need."""
    megabytes = found.all_to_all_bytes * 1e-6
    return Group(
        columns_view(
            _TABLES,
            found.tables,
            title=f"{order.hosts} hosts, {order.samples} samples each a step, {found.steps} steps",
        ),
        Text(),
        columns_view(
            _CACHES,
            found.inference,
            title=f"inference: all_to_all of sums brings a host {megabytes:.3f} MB a step",
            notes=["counted: with the rows that the trace's first half asks for most, instead"],
        ),
        Text(),
        columns_view(
            _TRAINING,
            [found.training],
            title=f"training: all_to_all both ways, {2 * megabytes:.3f} MB",
        ),
        Text(),
        Text(f"rows and what the optimiser keeps: {size_text(found.rows_bytes)} a host, at most"),
    )
