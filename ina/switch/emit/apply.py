"""Tables to C: keys packed into words, the lookup, and the action's code in place."""

from __future__ import annotations

from dataclasses import replace

from ina.switch.emit.c_types import literal
from ina.switch.emit.code import Code
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.stmt import Apply, Assign, Block, Exit
from ina.switch.passes.tables import Part, Run, TablePlan, param_offsets


def emit_apply(to: Code, stmt: Apply) -> None:
    """Look up, count, run the action, branch."""
    plan, out, memory = to.layout.plan.tables_by_name[stmt.table], to.out, to.layout.memory
    table, name = plan.table, to.layout.table(plan)
    with out.block("", source=stmt.source):
        out.line(
            f"// table {table.name}: "
            + ", ".join(f"{key.name} ({key.kind.value})" for key in table.keys)
        )
        is_early = table.name in to.where.early
        if is_early:
            out.line(f"{memory.entry_type}const entry = early->{name};")
        else:
            look_up(to, plan, f"{memory.entry_type}const entry")
        if table.has_direct_counter:
            memory.count_hit(out, name, "entry")
        args, action = memory.words(plan, "entry"), memory.action("entry")
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


def look_up(to: Code, plan: TablePlan, entry: str) -> None:
    """Declares ``hit``, and sets or declares the entry: of the packet's key, or the default."""
    words: list[list[str]] = [[] for _ in range(plan.key_words)]
    for run in plan.main_runs if to.where.late else plan.runs:
        code = _raw(to, plan, run) if run[0].swapped_bytes else _key_part(to, plan, run[0])
        shift = run[0].shift
        words[run[0].word].append(f"{code} << {shift}" if shift else code)
    if words:
        values = ", ".join(" | ".join(terms) for terms in words)
        to.out.line(f"const uint64_t key[{plan.key_words}] = {{{values}}};")
    to.out.line("bool hit;")
    to.layout.memory.look_up(to.out, plan, to.layout.table(plan), entry)


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
