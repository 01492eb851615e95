"""Tables in the state block: their specification, and what is read of them ahead of egress."""

from __future__ import annotations

from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.passes.tables import Lookup, TablePlan

KINDS = {Lookup.EXACT: "INA_EXACT", Lookup.LPM: "INA_LPM", Lookup.SCAN: "INA_SCAN"}


def slot_bytes(plan: TablePlan) -> str:
    """Of one entry."""
    return f"INA_SLOT_BYTES({KINDS[plan.lookup]}, {plan.key_words}, {plan.param_words})"


def index_words(plan: TablePlan) -> str:
    """Of ``ina_table.index``."""
    capacity = plan.table.max_size
    if plan.lookup is Lookup.SCAN:
        return str(max(capacity, 1))
    return f"INA_INDEX_ROOM({capacity})"


def emit_specs(layout: Layout, out: Writer) -> None:
    """One ``ina_table_spec`` a table."""
    for plan in layout.plan.tables:
        table = plan.table
        flags = f"{str(table.is_const).lower()}, {str(table.default_is_const).lower()}"
        out.line(
            f"static const ina_table_spec {layout.table(plan)}_spec = "
            f"{{{KINDS[plan.lookup]}, {plan.key_words}, {plan.param_words}, {table.max_size}, "
            f"{plan.range_words:#x}, {flags}}}; // {table.name}",
            table.source,
        )
    out.line()


# -- what is read before the code that applies the table --


def fixed_tables(layout: Layout) -> list[TablePlan]:
    """Those that are read once for all copies of a packet."""
    return [plan for plan in layout.plan.tables if plan.is_fixed]


def emit_fixed_type(layout: Layout, out: Writer) -> None:
    """A struct of what fixed tables do."""
    if not fixed_tables(layout):
        return
    with out.block("typedef struct", tail="} fixed_entries;"):
        for plan in fixed_tables(layout):
            out.line(f"uint32_t {layout.table(plan)}_action;")
            out.line(f"uint64_t {layout.table(plan)}_args[{max(plan.param_words, 1)}];")
    out.line()


def read_fixed(layout: Layout, out: Writer) -> str:
    """Reads it before the copies are made; returns the argument for ``egress``."""
    if not fixed_tables(layout):
        return ""
    out.line("fixed_entries fixed;")
    for plan in fixed_tables(layout):
        name = layout.table(plan)
        at = f"S->{name}_slots + {plan.table.max_size} * {slot_bytes(plan)}"
        entry = f"((const ina_slot *)({at}))"
        out.line(f"fixed.{name}_action = {entry}->action;")
        for word in range(plan.param_words):
            out.line(f"fixed.{name}_args[{word}] = {entry}->words[{word}];")
    return ", &fixed"
