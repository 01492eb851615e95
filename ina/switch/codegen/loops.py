"""Loops over arrays: what does not change in the loop is computed before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ina.switch.codegen.layout import container
from ina.switch.ir.expr import ArrayFieldRef, Expr, FieldRef, LocalRef, LValue, StackFieldRef
from ina.switch.ir.stmt import Block, If, Loop, RegisterRead, RegisterRef, RegisterWrite
from ina.switch.ir.walk import targets, walk

if TYPE_CHECKING:
    from ina.switch.codegen.statements import Statements


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
            if guards:
                with out.block(f"if ({' && '.join(guards)})"):
                    self._loop(loop, locals_)
                rest = _without_registers(loop.body)
                if rest:
                    self.skip_registers = True
                    with out.block("else"):
                        self._loop(Loop(loop.count, rest), locals_)
                    self.skip_registers = False
            else:
                self._loop(loop, locals_)
        self._pointers.clear()
        self._conditions.clear()

    def _loop(self, loop: Loop, locals_: list[LocalRef]) -> None:
        out = self._to.out
        out.line("#pragma GCC ivdep")
        with out.block(f"for (size_t k = 0; k < {loop.count}; k++)"):
            for local in locals_:
                out.line(f"{container(local.width_bits)} {local.name} = 0;")
            self._to.block(loop.body)

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
                f"&S->{group.name}[ina_min_u64({name}_index, {group.size - 1})];"
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
