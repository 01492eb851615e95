"""Tables in which packets of the main path are looked up ahead of ingress."""

from __future__ import annotations

from ina.switch.emit.apply import look_up
from ina.switch.emit.code import Code
from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.passes.main_path import Gate
from ina.switch.passes.tables import TablePlan


def early_tables(layout: Layout) -> list[TablePlan]:
    """Those that packets of the main path are looked up in before ingress."""
    plan = layout.plan
    return [plan.tables_by_name[name] for name in plan.main.early] if plan.main else []


def emit_early_type(layout: Layout, out: Writer) -> None:
    """A struct of the entries of early tables."""
    if not early_tables(layout):
        return
    with out.block("typedef struct", tail="} early_entries;"):
        for plan in early_tables(layout):
            out.line(f"{layout.memory.entry_type}{layout.table(plan)};")
    out.line()


def find_early(to: Code) -> str:
    """Looks them up for a packet of the main path, which it leaves if there is no entry for it;
    returns the argument for its ingress."""
    if not early_tables(to.layout):
        return ""
    to.out.line("early_entries entries;")
    to.out.line("early_entries *const early = &entries;")
    for plan in early_tables(to.layout):
        with to.out.block(""):
            look_up(to, plan, f"early->{to.layout.table(plan)}")
            to.out.line("if (INA_UNLIKELY(!hit)) return false;")
    return ", early"


def pass_gates(to: Code, gates: tuple[Gate, ...]) -> None:
    """Leaves the main path if a packet does not pass all of these."""
    for gate in gates:
        with to.out.block(""):
            plan = to.layout.plan.tables_by_name[gate.table]
            look_up(to, plan, f"const {to.layout.memory.entry_type}const gate")
            wrong = f"!hit || {to.layout.memory.action('gate')} != {gate.action}"
            to.out.line(f"if (INA_UNLIKELY({wrong})) return false;")
