"""Tables to C: specification, key packing, lookup with the action's code in place."""

from __future__ import annotations

from dataclasses import replace

from ina.switch.emit_c.c_types import literal
from ina.switch.emit_c.code import Code
from ina.switch.emit_c.layout import Layout
from ina.switch.emit_c.writer import Writer
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.stmt import Apply, Assign, Block, Exit
from ina.switch.passes.main_path import Gate
from ina.switch.passes.tables import Lookup, Part, Run, TablePlan, param_offsets

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


# -- what is looked up or read before the code that applies the table --


def early_tables(layout: Layout) -> list[TablePlan]:
    """Those that packets of the main path are looked up in before ingress."""
    plan = layout.plan
    return [plan.tables_by_name[name] for name in plan.main.early] if plan.main else []


def fixed_tables(layout: Layout) -> list[TablePlan]:
    """Those that are read once for all copies of a packet."""
    return [plan for plan in layout.plan.tables if plan.is_fixed]


def emit_early_type(layout: Layout, out: Writer) -> None:
    """A struct of the entries of early tables."""
    if not early_tables(layout):
        return
    with out.block("typedef struct", tail="} early_entries;"):
        for plan in early_tables(layout):
            out.line(f"ina_slot *{layout.table(plan)};")
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
            _look_up(to, plan, f"early->{to.layout.table(plan)}", "hit")
            to.out.line("if (INA_UNLIKELY(!hit)) return false;")
    return ", early"


def pass_gates(to: Code, gates: tuple[Gate, ...]) -> None:
    """Leaves the main path if a packet does not pass all of these."""
    for gate in gates:
        with to.out.block(""):
            plan = to.layout.plan.tables_by_name[gate.table]
            _look_up(to, plan, "const ina_slot *const gate", "hit")
            wrong = f"!hit || gate->action != {gate.action}"
            to.out.line(f"if (INA_UNLIKELY({wrong})) return false;")


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


# -- applying --


def emit_apply(to: Code, stmt: Apply) -> None:
    """Look up, count, run the action, branch."""
    plan, out = to.layout.plan.tables_by_name[stmt.table], to.out
    table, name = plan.table, to.layout.table(plan)
    with out.block("", source=stmt.source):
        out.line(
            f"// table {table.name}: "
            + ", ".join(f"{key.name} ({key.kind.value})" for key in table.keys)
        )
        is_early = table.name in to.where.early
        if is_early:
            out.line(f"ina_slot *const entry = early->{name};")
        else:
            _look_up(to, plan, "ina_slot *const entry", "hit")
        if table.has_direct_counter:
            out.line("entry->packets++;")
            out.line("entry->bytes += p->length;")
        args = f"ina_slot_params(entry, {KINDS[plan.lookup]}, {plan.key_words})"
        action = "entry->action"
        if to.where.fixed and plan.is_fixed:
            args, action = f"fixed->{name}_args", f"fixed->{name}_action"
        out.line(f"const uint64_t *const args = {args};")
        out.line("(void)entry;")
        out.line("(void)args;")
        _actions(to, stmt, plan, action)
        if is_early:  # it was hit, or the packet had left the main path
            to.block(stmt.on_hit)
        else:
            _hit_or_miss(to, stmt)


def _look_up(to: Code, plan: TablePlan, entry: str, hit: str) -> None:
    """Declares ``hit``, and sets or declares the entry."""
    words: list[list[str]] = [[] for _ in range(plan.key_words)]
    for run in plan.main_runs if to.where.late else plan.runs:
        code = _raw(to, plan, run) if run[0].swapped_bytes else _key_part(to, plan, run[0])
        shift = run[0].shift
        words[run[0].word].append(f"{code} << {shift}" if shift else code)
    if words:
        values = ", ".join(" | ".join(terms) for terms in words)
        to.out.line(f"const uint64_t key[{plan.key_words}] = {{{values}}};")
    key = "key" if words else "NULL"
    to.out.line(f"bool {hit};")
    name, capacity = to.layout.table(plan), plan.table.max_size
    where = f"&S->{name}, S->{name}_slots, S->{name}_index"
    if plan.remembers_last:
        arguments = f"{where}, {plan.param_words}, {capacity}, key[0], &{hit}"
        to.out.line(f"{entry} = ina_lookup_again({arguments});")
    else:
        to.out.line(
            f"{entry} = ina_lookup({where}, {KINDS[plan.lookup]}, {plan.key_words}, "
            f"{plan.param_words}, {capacity}, {plan.range_words:#x}, {key}, &{hit});"
        )


def _hit_or_miss(to: Code, stmt: Apply) -> None:
    if stmt.on_hit:
        with to.out.block("if (INA_LIKELY(hit))"):
            to.block(stmt.on_hit)
    if stmt.on_miss:
        with to.out.block("else" if stmt.on_hit else "if (!hit)"):
            to.block(stmt.on_miss)


def _actions(to: Code, stmt: Apply, plan: TablePlan, chosen: str) -> None:
    out, followers = to.out, dict(stmt.on_action)
    if not any(action.body or action.index in followers for action in plan.actions):
        return
    default = plan.table.default.action
    likely = [action.index for action in plan.actions if action.index != default]
    if likely:  # the program names the usual one first
        chosen = f"__builtin_expect({chosen}, {likely[0]})"
    with out.block(f"switch ({chosen})"):
        for action in plan.actions:
            with out.block(f"case {action.index}:", source=action.source):
                out.line(f"// action {action.name}")
                inside = to.at(replace(to.where, params=param_offsets(action)))
                inside.block(_done(to, plan, action.body))
                to.block(followers.get(action.index, ()))
                if not any(isinstance(node, Exit) for node in action.body[-1:]):
                    out.line("break;")
        out.line("default: break;")


def _done(to: Code, plan: TablePlan, body: Block) -> Block:
    """What an action does, but for fields that are read from the entry."""
    if plan.table.name not in to.where.early or to.layout.plan.main is None:
        return body
    said = to.layout.plan.main.entry_fields
    return tuple(it for it in body if not (isinstance(it, Assign) and it.target in said))


def _raw(to: Code, plan: TablePlan, run: Run) -> str:
    """Neighbouring fields in wire order; those of an invalid header are 0."""
    ref = plan.table.keys[run[0].field].value
    assert isinstance(ref, FieldRef)
    layout = to.layout
    valid = layout.valid(ref.header)
    size = sum(part.swapped_bytes for part in run)
    if not layout.plan.in_packet(ref, late=to.where.late):
        return f"({valid} ? ina_reverse({layout.field(ref, late=to.where.late)}, {size}) : 0)"
    header_type = layout.program.headers[ref.header].type
    first = header_type.by_name[ref.field].offset_bits // 8
    at = f"{layout.wire(ref.header)} + {first}"
    if size in (1, 2, 4, 8):
        load = f"ina_load_raw({at}, {size})"
    elif first + 8 <= header_type.width_bits // 8:
        load = f"(ina_load_raw({at}, 8) & INA_MASK({8 * size}))"
    else:
        load = f"ina_reverse(ina_load({at}, {size}), {size})"
    return f"({valid} ? {load} : 0)"


def _key_part(to: Code, plan: TablePlan, part: Part) -> str:
    """One word of a key field; a field of an invalid header is 0."""
    key = plan.table.keys[part.field]
    code = to.expr.exact(key.value, 128 if key.width_bits > 64 else 64)
    if getattr(key.value, "signed", False):  # an entry holds the field's own bits
        code = f"({code} & {literal((1 << key.width_bits) - 1)})"
    if key.width_bits > 64:
        code = f"(uint64_t)({code} >> 64)" if part.field_word else f"(uint64_t){code}"
    for header in plan.key_headers[part.field]:
        code = f"({to.layout.valid(header)} ? {code} : 0)"
    return code
