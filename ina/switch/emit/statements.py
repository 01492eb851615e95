"""Statements to C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ina.switch.emit.apply import emit_apply
from ina.switch.emit.c_types import container, literal
from ina.switch.emit.code import Code
from ina.switch.emit.hashes import emit_hash
from ina.switch.emit.loops import emit_loop
from ina.switch.emit.where import Where
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import Const, Expr
from ina.switch.ir.ranges import range_of
from ina.switch.ir.stmt import (
    Apply,
    Assign,
    Block,
    CopyHeader,
    CopyStack,
    Count,
    Exit,
    Hash,
    HeaderRef,
    If,
    Loop,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
    SetValid,
    ShiftStack,
    Stmt,
    Truncate,
)


class Statements(Code):
    """Emits blocks of one program into a writer."""

    def at(self, where: Where) -> Statements:
        """The same for another place."""
        return type(self)(self.layout, self.out, where, self.numbers)

    def emit(self, stmt: Stmt) -> None:
        """One statement. Raises UnsupportedProgramError."""
        _EMITTERS[type(stmt)](self, stmt)

    def block(self, block: Block) -> None:
        """All statements, in order."""
        for stmt in block:
            try:
                self.emit(stmt)
            except UnsupportedProgramError as error:
                if error.source or not str(stmt.source):
                    raise
                raise UnsupportedProgramError(error.construct, str(stmt.source)) from None

    def _assign(self, stmt: Assign) -> None:
        self.store(stmt.target, self.expr.stored(stmt.value, stmt.target.width_bits), stmt)

    # -- headers --

    def _header(self, ref: HeaderRef) -> tuple[str, str, str]:
        """Struct, validity flag and the condition under which the element exists ("" is always)."""
        if ref.index is None:
            return self.layout.header(ref.name), self.layout.valid(ref.name), ""
        size = len(self.layout.program.stacks[ref.name].members)
        stack = self.layout.stack(ref.name)
        at = f"ina_min_u64({self.expr.exact(ref.index, 64)}, {size - 1})"
        return f"{stack}[{at}]", f"{stack}_valid[{at}]", self.expr.in_stack(ref.name, ref.index)

    def _copy_header(self, stmt: CopyHeader) -> None:
        target, target_valid, target_exists = self._header(stmt.target)
        value, value_valid, value_exists = self._header(stmt.value)
        if target_exists:
            with self.out.block(f"if ({target_exists})", source=stmt.source):
                self._copy(target, target_valid, value, value_valid, value_exists)
        else:
            self._copy(target, target_valid, value, value_valid, value_exists, stmt)
        if stmt.target.index is None and not self._in_stack(stmt.target.name):
            from_packet = stmt.value.index is None and not self._in_stack(stmt.value.name)
            nowhere = self.layout.frame.nowhere
            place = self.layout.place(stmt.value.name) if from_packet else nowhere
            self.out.line(f"{self.layout.place(stmt.target.name)} = {place};")

    def _in_stack(self, header: str) -> bool:
        return bool(self.layout.program.headers[header].stack)

    def _copy(
        self,
        target: str,
        target_valid: str,
        value: str,
        value_valid: str,
        exists: str,
        stmt: Stmt | None = None,
    ) -> None:
        condition = f"{exists} && {value_valid}" if exists else value_valid
        source = stmt.source if stmt else None
        self.out.line(f"{target_valid} = {condition};", source)
        self.out.line(f"if ({target_valid}) {target} = {value};")

    def _set_valid(self, stmt: SetValid) -> None:
        header, valid, exists = self._header(stmt.header)
        guard = f"{exists} && " if exists else ""
        count = self._counted(stmt)
        if not stmt.valid:
            if count:
                self.out.line(f"if ({guard}{valid}) {count}")
            prefix = f"if ({exists}) " if exists else ""
            self.out.line(f"{prefix}{valid} = 0;", stmt.source)
            return
        with self.out.block(f"if ({guard}!{valid})", source=stmt.source):
            self.out.line(f"INA_CLEAR({header});")
            self.out.line(f"{valid} = 1;")
            if count:
                self.out.line(count)
            if stmt.header.index is None and not self._in_stack(stmt.header.name):
                nowhere = self.layout.frame.nowhere
                self.out.line(f"{self.layout.place(stmt.header.name)} = {nowhere};")

    def _counted(self, stmt: SetValid) -> str:
        """As BMv2, which counts these headers, but none that are copied, pushed or popped."""
        if not self.layout.plan.counts_length:
            return ""
        program, name = self.layout.program, stmt.header.name
        typed = program.stacks[name] if name in program.stacks else program.headers[name]
        sign = "+" if stmt.valid else "-"
        return f"p->told_length {sign}= {typed.type.width_bits // 8};"

    def _copy_stack(self, stmt: CopyStack) -> None:
        target, value = self.layout.stack(stmt.target), self.layout.stack(stmt.value)
        self.out.line(f"memcpy({target}, {value}, sizeof {target});", stmt.source)
        self.out.line(f"memcpy({target}_valid, {value}_valid, sizeof {target}_valid);")
        self.out.line(f"{target}_next = {value}_next;")

    def _shift_stack(self, stmt: ShiftStack) -> None:
        stack = self.layout.stack(stmt.stack)
        size = len(self.layout.program.stacks[stmt.stack].members)
        count = min(abs(stmt.count), size)
        kept = size - count
        source, target, gap = (0, count, 0) if stmt.count > 0 else (count, 0, kept)
        for array in (stack, f"{stack}_valid"):
            if kept:
                self.out.line(
                    f"memmove(&{array}[{target}], &{array}[{source}], {kept} * sizeof {array}[0]);",
                    stmt.source,
                )
        self.out.line(f"memset(&{stack}[{gap}], 0, {count} * sizeof {stack}[0]);")
        self.out.line(f"memset(&{stack}_valid[{gap}], 0, {count});")
        if stmt.count > 0:
            self.out.line(f"{stack}_next = ina_min_u64({stack}_next + {stmt.count}, {size});")
        else:
            self.out.line(f"{stack}_next -= ina_min_u64({stack}_next, {-stmt.count});")

    # -- state --

    def _element(self, register: RegisterRef, index: Expr) -> tuple[str, str]:
        """The element and the condition for the index being in range ("" is always)."""
        group, loop = self.layout.group(register.name), self.where.loop
        if loop and loop.element and loop.element.group == group.group:
            return f"{loop.pointer}->{group.member(register, 'k')}", ""
        code, size = self.expr.exact(index, 64), group.group.size
        low, high = range_of(index)
        inside = "" if low >= 0 and high < size else f"{code} < {size}"
        if isinstance(index, Const) and inside:
            inside = "false"
            code = "0"
        element = self.layout.memory.element(group.c_name, code)
        return f"{element}.{group.member(register, 'k')}", inside

    def _register_read(self, stmt: RegisterRead) -> None:
        element, inside = self._element(stmt.register, stmt.index)
        if self.where.loop and self.where.loop.out_of_range:
            element, inside = "0", ""
        width = stmt.target.width_bits
        if width < self.layout.register_bits[stmt.register.name] and width not in (
            8,
            16,
            32,
            64,
            128,
        ):
            element = f"({container(width)})({element} & {literal((1 << width) - 1)})"
        if inside == "false":
            element = "0"
        elif inside:
            element = f"INA_LIKELY({inside}) ? {element} : 0"
        self.store(stmt.target, element, stmt)

    def _register_write(self, stmt: RegisterWrite) -> None:
        if self.where.loop and self.where.loop.out_of_range:
            return
        element, inside = self._element(stmt.register, stmt.index)
        value = self.expr.stored(stmt.value, self.layout.register_bits[stmt.register.name])
        guard = f"if (INA_LIKELY({inside})) " if inside else ""
        self.out.line(f"{guard}{element} = {value};", stmt.source)

    def _count(self, stmt: Count) -> None:
        counter = next(c for c in self.layout.program.counters if c.name == stmt.counter)
        with self.out.block("", source=stmt.source):
            self.out.line(f"const uint64_t i = {self.expr.exact(stmt.index, 64)};")
            with self.out.block(f"if (INA_LIKELY(i < {counter.size}))"):
                self.layout.memory.count(self.out, self.layout.counter(counter.name))

    def _exit(self, stmt: Exit) -> None:
        self.out.line("return;", stmt.source)

    def _truncate(self, stmt: Truncate) -> None:
        self.out.line(
            f"p->truncate = ina_min_u64({self.expr.exact(stmt.length_bytes, 64)}, UINT32_MAX);",
            stmt.source,
        )

    def _if(self, stmt: If) -> None:
        known = self.where.loop.conditions if self.where.loop else {}
        condition = known.get(stmt.condition) or self.expr.boolean(stmt.condition)
        then, otherwise = stmt.then, stmt.otherwise
        if not then and not otherwise:
            return
        if not then:
            condition, then, otherwise = f"!{condition}", otherwise, ()
        head = f"if {condition}" if _parenthesised(condition) else f"if ({condition})"
        with self.out.block(head, tail="} else {" if otherwise else "}", source=stmt.source):
            self.block(then)
        if otherwise:
            self.out.lines.pop()  # "} else {": reopened as the second block's head
            with self.out.block("} else"):
                self.block(otherwise)


_EMITTERS: dict[type, Callable[[Statements, Any], None]] = {
    Assign: Statements._assign,
    CopyHeader: Statements._copy_header,
    SetValid: Statements._set_valid,
    CopyStack: Statements._copy_stack,
    ShiftStack: Statements._shift_stack,
    RegisterRead: Statements._register_read,
    RegisterWrite: Statements._register_write,
    Count: Statements._count,
    Truncate: Statements._truncate,
    Exit: Statements._exit,
    If: Statements._if,
    Hash: emit_hash,
    Apply: emit_apply,
    Loop: emit_loop,
}


def _parenthesised(text: str) -> bool:
    """Whether the first parenthesis closes at the very end."""
    if not text.startswith("("):
        return False
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
