"""Loops over arrays: what the plan says is done once stands before them."""

from __future__ import annotations

from dataclasses import replace

from ina.switch.emit.c_types import container
from ina.switch.emit.code import Code
from ina.switch.emit.where import InLoop
from ina.switch.ir.stmt import Block, Loop
from ina.switch.passes.loops import Condition, Element, LateUse, LoopPlan


def emit_loop(to: Code, loop: Loop) -> None:
    """``for (k = 0; k < count; k++)`` with everything invariant taken out of it."""
    plan = to.where.loops[loop.number]
    with to.out.block("", source=loop.source):
        inside = InLoop({c.expr: _condition(to, c) for c in plan.conditions})
        if plan.element is None:
            _emit(to, loop, plan, loop.body, inside)
            return
        name = _pointer(to, plan.element)
        reached = replace(inside, element=plan.element, pointer=name)
        with to.out.block(f"if (INA_LIKELY({name}_index < {plan.element.group.size}))"):
            _emit(to, loop, plan, loop.body, reached)
        if plan.without_registers:
            with to.out.block("else"):
                rest = replace(inside, out_of_range=True)
                _emit(to, loop, plan, plan.without_registers, rest)


def _condition(to: Code, condition: Condition) -> str:
    name = f"condition_{next(to.numbers)}"
    code = to.expr.boolean(condition.expr)
    to.out.line(f"const bool {name} = {code};", condition.source)
    return name


def _pointer(to: Code, element: Element) -> str:
    """Points to the element if the index, which it declares, too, is in range."""
    name, group = f"at_{next(to.numbers)}", to.layout.groups[element.group.number]
    to.out.line(f"const uint64_t {name}_index = {to.expr.exact(element.index, 64)};")
    last = element.group.size - 1
    at = to.layout.memory.element(group.c_name, f"ina_min_u64({name}_index, {last})")
    to.out.line(f"{group.c_name}_slot *restrict const {name} = &{at};")
    return name


def _emit(to: Code, loop: Loop, plan: LoopPlan, body: Block, inside: InLoop) -> None:
    out, layout = to.out, to.layout
    late = {use.late.header: f"element_{number}" for number, use in enumerate(plan.late)}
    out.line("INA_ANY_ORDER")
    with out.block(f"for (size_t k = 0; k < {loop.count}; k++)"):
        for local in plan.locals:
            out.line(f"{container(local.width_bits)} {local.name} = 0;")
        for use in plan.late:
            header, array = use.late.header, use.late.array
            at = layout.program.headers[header].type.fields[array.first].offset_bits // 8
            element = f"ina_element_{array.width_bits}({layout.wire(header)} + {at}, k)"
            out.line(f"uint{array.width_bits}_t {late[header]} = {element};")
            out.line(f"(void){late[header]};")
        to.at(replace(to.where, loop=replace(inside, late=late))).block(body)
        for use in plan.late:
            if use.is_changed and not _is_in_registers(use, inside):
                out.line(f"{_own(to, use)}[k] = {late[use.late.header]};")
    for use in plan.late:
        if not use.is_changed:
            continue  # they are where they were
        kept_in = _own(to, use)
        if use.kept_in is not None and _is_in_registers(use, inside):
            group = layout.group(use.kept_in.name)
            kept_in = f"{inside.pointer}->{group.arrays[use.kept_in.array]}"
        out.line(f"{layout.kept_in(use.late.header)} = {kept_in};")


def _own(to: Code, use: LateUse) -> str:
    """The late array's place for values that are nowhere else."""
    return to.layout.array(use.late.header, use.late.array)


def _is_in_registers(use: LateUse, inside: InLoop) -> bool:
    return use.kept_in is not None and inside.element is not None
