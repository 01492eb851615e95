"""Checksums to C: verified before ingress, updated behind egress."""

from __future__ import annotations

from ina.switch.emit.code import Code
from ina.switch.emit.hashes import emit_csum16, wire_csum16
from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.ir.expr import BoolConst, Expr
from ina.switch.passes.sending import ChecksumPlan


def emit_verify(to: Code) -> None:
    """``verify_checksums``, on the main path ``verify_checksums_main``: true: one was wrong."""
    out = to.out
    name = "verify_checksums_main" if to.where.late else "verify_checksums"
    with out.block(f"INA_INLINE bool {name}({to.layout.frame.packet} *const p)"):
        out.line("bool wrong = false;")
        for plan in to.layout.plan.checksums:
            if plan.checksum.verify:
                condition = plan.main_condition if to.where.late else plan.checksum.condition
                with out.block(_if(to, plan, condition), source=plan.checksum.source):
                    _verify(to, plan)
        out.line("(void)p;")
        out.line("return wrong;")
    out.line()


def emit_update(to: Code, name: str = "update_checksums") -> None:
    """``update_checksums``: of a copy."""
    layout, out = to.layout, to.out
    parameters = "".join(f", const uint64_t wire_{number}" for number, _ in _wire_updates(layout))
    with out.block(f"INA_INLINE void {name}({layout.frame.packet} *const p{parameters})"):
        for number, plan in enumerate(layout.plan.checksums):
            checksum = plan.checksum
            if not checksum.update:
                continue
            with out.block(_if(to, plan, checksum.condition), source=checksum.source):
                if plan.from_packet:
                    changed, _ = wire_csum16(layout, plan, plan.written)
                    total = f"{changed} + wire_{number}"
                    out.line(f"const uint16_t csum = ina_csum16_finish({total});")
                else:
                    emit_csum16(to, checksum.inputs, "csum")
                width = checksum.target.width_bits
                cut = "" if width >= 16 else f" & INA_MASK({width})"
                out.line(f"{to.expr.lvalue(checksum.target)} = csum{cut};")
        out.line("(void)p;")
    out.line()


def _if(to: Code, plan: ChecksumPlan, condition: Expr | None) -> str:
    """A checksum that would stand in an invalid header is neither verified nor updated."""
    header = to.layout.program.headers[plan.checksum.target.header]
    terms = [] if header.metadata else [to.layout.valid(header.name)]
    if condition is not None and condition != BoolConst(True):
        terms.append(to.expr.boolean(condition))
    return f"if ({' && '.join(terms)})" if terms else ""


def _verify(to: Code, plan: ChecksumPlan) -> None:
    layout, out, target = to.layout, to.out, plan.checksum.target
    if plan.from_packet:
        _, wire = wire_csum16(layout, plan, frozenset())
        field = layout.program.headers[target.header].type.by_name[target.field]
        whole = field.width_bits == 16 and field.offset_bits % 8 == 0
        if whole and layout.plan.in_packet(target, late=to.where.late):
            at = f"{layout.wire(target.header)} + {field.offset_bits // 8}"
            out.line(f"wrong |= ina_csum16_finish({wire}) != ina_load_raw({at}, 2);")
            return
        out.line(f"const uint16_t csum = (uint16_t)~ina_csum16_wire({wire});")
    else:
        emit_csum16(to, plan.checksum.inputs, "csum")
    out.line(f"wrong |= csum != {to.expr.lvalue(target)};")


def _wire_updates(layout: Layout) -> list[tuple[int, ChecksumPlan]]:
    """Checksums to update that are partly over bytes of the packet, with their numbers."""
    return [
        (number, plan)
        for number, plan in enumerate(layout.plan.checksums)
        if plan.checksum.update and plan.from_packet
    ]


def emit_wire_sums(layout: Layout, out: Writer) -> str:
    """What all copies' checksums have in common; returns the arguments for update_checksums."""
    arguments = ""
    for number, plan in _wire_updates(layout):
        _, wire = wire_csum16(layout, plan, plan.written)
        valid = layout.valid(plan.checksum.target.header)
        out.line(f"const uint64_t wire_{number} = {valid} ? ina_csum16_wire({wire}) : 0;")
        arguments += f", wire_{number}"
    return arguments
