"""Loops over arrays: what does not change in the loop is computed before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ina.switch.emit_c.late_arrays import LateArray
from ina.switch.emit_c.layout import container
from ina.switch.ir.expr import ArrayFieldRef, Expr, FieldRef, LocalRef, LValue, StackFieldRef
from ina.switch.ir.stmt import Block, If, Loop, RegisterRead, RegisterRef, RegisterWrite
from ina.switch.ir.walk import targets, walk

if TYPE_CHECKING:
    from ina.switch.emit_c.statements import Statements


class LoopEmitter:
    """Emits loops for :class:`Statements`; outside a loop its answers are empty."""

    def __init__(self, statements: Statements) -> None:
        self._to = statements
        self._pointers: dict[tuple[str, Expr], str] = {}  # (group, index) -> element
        self._conditions: dict[Expr, str] = {}
        self.skip_registers = False
        self._serial = 0

    def pointer(self, register: RegisterRef, index: Expr) -> str:
        """The element through a pointer made before the loop."""
        group, member = self._to.layout.registers[register.name]
        name = self._pointers.get((group.name, index))
        if not name:
            return ""
        if register.array:
            member = f"{group.array_names[register.array]}[k]"
        return f"{name}->{member}"

    def condition(self, expr: Expr) -> str:
        """A condition computed before the loop."""
        return self._conditions.get(expr, "")

    def emit(self, loop: Loop) -> None:
        """``for (k = 0; k < count; k++)`` with everything invariant taken out of it."""
        out = self._to.out
        changed = set(targets(loop.body))
        with out.block("", source=loop.source):
            self._hoist_conditions(loop.body, changed)
            guards = self._hoist_pointers(loop.body, changed)
            locals_ = sorted(
                {n for n in walk(loop.body) if isinstance(n, LocalRef)}, key=lambda n: n.name
            )
            late = [
                array
                for array in self._to.layout.late_arrays.values()
                if self._to.layout.on_main and any(array.holds(node) for node in walk(loop.body))
            ]
            if guards:
                with out.block(f"if (INA_LIKELY({' && '.join(guards)}))"):
                    self._loop(loop, locals_, late, id(loop))
                rest = _without_registers(loop.body)
                if rest:
                    self.skip_registers = True
                    with out.block("else"):
                        self._loop(Loop(loop.count, rest), locals_, late)
                    self.skip_registers = False
            else:
                self._loop(loop, locals_, late)
        self._pointers.clear()
        self._conditions.clear()

    def _loop(
        self, loop: Loop, locals_: list[LocalRef], late: list[LateArray], number: int = 0
    ) -> None:
        """``number``: the loop's in :attr:`LateArray.same_as`, where its registers are reached."""
        out, layout = self._to.out, self._to.layout
        out.line("#pragma GCC ivdep")
        with out.block(f"for (size_t k = 0; k < {loop.count}; k++)"):
            for local in locals_:
                out.line(f"{container(local.width_bits)} {local.name} = 0;")
            for array in late:
                bits, first = array.array.width_bits, array.array.first
                at = layout.program.headers[array.header].type.fields[first].offset_bits // 8
                name = layout.element_names[array.header] = f"element_{len(layout.element_names)}"
                wire = f"{layout.wire(array.header)} + {at}"
                out.line(f"uint{bits}_t {name} = ina_element_{bits}({wire}, k);")
                out.line(f"(void){name};")
            self._to.block(loop.body)
            kept = {array.header: self._kept(loop, array, number) for array in late}
            for array in late:
                own = f"{layout.header(array.header)}.{array.array.name}"
                if kept[array.header] == own:
                    out.line(f"{own}[k] = {layout.element_names[array.header]};")
        layout.element_names.clear()
        for array in late:
            if kept[array.header]:
                out.line(f"{layout.kept_in(array.header)} = {kept[array.header]};")

    def _kept(self, loop: Loop, late: LateArray, number: int) -> str:
        """Where the late array's values are after the loop; "": where they were before."""
        if not any(late.holds(target) for target in targets(loop.body)):
            return ""
        registers = late.same_as.get(number)
        if registers is not None:
            group, _ = self._to.layout.registers[registers.name]
            for (name, _), pointer in self._pointers.items():
                if name == group.name:
                    return f"{pointer}->{group.array_names[registers.array]}"
        return f"{self._to.layout.header(late.header)}.{late.array.name}"

    def _invariant(self, expr: Expr, changed: set[LValue]) -> bool:
        for node in walk(expr):
            if isinstance(node, (LocalRef, ArrayFieldRef, StackFieldRef)):
                return False
            if isinstance(node, FieldRef) and node in changed:
                return False
        return True

    def _hoist_conditions(self, body: Block, changed: set[LValue]) -> None:
        for node in walk(body):
            if not isinstance(node, If) or node.condition in self._conditions:
                continue
            if self._invariant(node.condition, changed):
                name = f"condition_{self._serial}"
                self._serial += 1
                code = self._to.expr.boolean(node.condition)
                self._to.out.line(f"const bool {name} = {code};", node.source)
                self._conditions[node.condition] = name

    def _hoist_pointers(self, body: Block, changed: set[LValue]) -> list[str]:
        """Pointers to the elements if every index is invariant; the guards that make them valid."""
        accesses = [n for n in walk(body) if isinstance(n, (RegisterRead, RegisterWrite))]
        if not accesses or not all(self._invariant(n.index, changed) for n in accesses):
            return []
        guards = []
        for node in accesses:
            group, _ = self._to.layout.registers[node.register.name]
            if (group.name, node.index) in self._pointers:
                continue
            name = f"at_{self._serial}"
            self._serial += 1
            code = self._to.expr.exact(node.index, 64)
            self._to.out.line(f"const uint64_t {name}_index = {code};")
            self._to.out.line(
                f"{group.name}_slot *restrict const {name} = "
                f"&{group.local}[ina_min_u64({name}_index, {group.size - 1})];"
            )
            guards.append(f"{name}_index < {group.size}")
            self._pointers[group.name, node.index] = name
        if len(guards) > 1:
            # Different elements may be the same: no `restrict`, and one guard is not enough.
            self._pointers.clear()
            return []
        return guards


def _without_registers(body: Block) -> Block:
    """The statements that still do something when every register access is out of range."""
    return () if all(isinstance(stmt, RegisterWrite) for stmt in body) else body
