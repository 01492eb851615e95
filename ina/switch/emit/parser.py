"""The parser to C: one label a state, a cursor into the packet, headers copied field by field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet

from ina.switch.emit.c_types import container_bits, literal, load_field
from ina.switch.emit.code import Code
from ina.switch.emit.layout import TypeLayout
from ina.switch.emit.where import GENERAL, ON_MAIN
from ina.switch.emit.writer import Writer
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import Field
from ina.switch.ir.expr import Expr
from ina.switch.ir.program import ParserState, SelectCase
from ina.switch.ir.stmt import Advance, Extract, Stmt, Verify
from ina.switch.passes.parsing import MAX_STEPS, MainStep, Needs, StatePlan
from ina.switch.passes.plan import MainPath


def emit_parser(to: Code) -> None:
    """``parse``: sets ``p->offset``, headers, metadata; returns the error code."""
    _General(to.at(GENERAL)).emit()


def emit_main_parser(to: Code, main: MainPath) -> None:
    """``parse_main``: the same on the main path; false: the packet goes another way."""
    _Main(to.at(ON_MAIN), main).emit()


class _Parser(ABC):
    """What both forms of the parser have in common."""

    def __init__(self, to: Code) -> None:
        self._to = to
        self._layout = to.layout
        self._out = to.out
        self._program = to.layout.program

    @abstractmethod
    def _fail(self, error: str) -> str:
        """What is done when a packet is not as the parser wants it."""

    @abstractmethod
    def _enough(self, bits: int) -> None:
        """Makes sure that a header of so many bits is there."""

    @abstractmethod
    def _load(self, header: str, struct: str, layout: TypeLayout) -> None:
        """Unpacks the header at ``at``."""

    def _need(self, bits: int) -> None:
        count = (bits + 7) // 8
        self._out.line(
            f"if (INA_UNLIKELY((size_t)(end - cursor) < {count})) {self._fail('PacketTooShort')}"
        )

    def _check(self, needs: Needs) -> None:
        if needs.bits_ahead:
            self._need(needs.bits_ahead)
        for name in needs.filled_stacks:
            stack = self._layout.stack(name)
            self._out.line(f"if (!{stack}_next) {self._fail('StackOutOfBounds')}")

    def _body(self, plan: StatePlan) -> None:
        for stmt, needs in plan.body:
            self._stmt(stmt, needs)
        self._check(plan.keys)

    def _stmt(self, stmt: Stmt, needs: Needs) -> None:
        out, expr = self._out, self._to.expr
        if isinstance(stmt, Extract):
            self._extract(stmt)
        elif isinstance(stmt, Verify):
            self._check(needs)
            error = expr.exact(stmt.error, 32)
            condition = expr.boolean(stmt.condition)
            out.line(f"if (!{condition}) {{ error = (uint32_t){error}; goto done; }}", stmt.source)
        elif isinstance(stmt, Advance):
            with out.block("", source=stmt.source):
                out.line(f"const uint64_t skip = {expr.exact(stmt.bits, 64)} / 8;")
                out.line(f"if ((uint64_t)(end - cursor) < skip) {self._fail('PacketTooShort')}")
                out.line("cursor += skip;")
        else:
            self._check(needs)
            self._to.block((stmt,))

    def _extract(self, stmt: Extract) -> None:
        out = self._out
        if stmt.stack:
            stack = self._program.stacks[stmt.name]
            name = self._layout.stack(stmt.name)
            header_type = stack.type
            out.line(
                f"if ({name}_next >= {len(stack.members)}) {self._fail('StackOutOfBounds')}",
                stmt.source,
            )
            header, valid = f"{name}[{name}_next]", f"{name}_valid[{name}_next]"
        else:
            header_type = self._program.headers[stmt.name].type
            header, valid = self._layout.header(stmt.name), self._layout.valid(stmt.name)
        size = header_type.width_bits // 8
        if header_type.width_bits % 8:
            raise UnsupportedProgramError(
                f"extraction of {stmt.name!r}, not whole bytes", str(stmt.source)
            )
        with out.block("", source=stmt.source):
            self._enough(header_type.width_bits)
            out.line(f"const uint8_t *const at = {self._layout.frame.at_cursor};")
            out.line("(void)at;")
            self._load(stmt.name, header, self._layout.types[header_type.name])
            out.line(f"{valid} = 1;")
            if not stmt.stack and not self._program.headers[stmt.name].stack:
                out.line(f"{self._layout.place(stmt.name)} = {self._layout.frame.here};")
            if stmt.stack:
                out.line(f"{name}_next++;")
            out.line(f"cursor += {size};")

    def _condition(
        self, state: ParserState, case: SelectCase, settled: AbstractSet[Expr] = frozenset()
    ) -> str:
        """``settled``: keys that have been compared before."""
        terms = []
        for key, width, (value, mask) in zip(
            state.keys, state.key_widths, case.values, strict=False
        ):
            if mask == 0 or key in settled:
                continue
            code = self._to.expr.exact(key, min(width, 64))
            if mask != (1 << width) - 1:
                code = f"({code} & {literal(mask)})"
            terms.append(f"ina_test({code} == {literal(value)})")
        if case.values and not terms:
            return "true"
        return " && ".join(terms)


class _General(_Parser):
    """``parse``: any way through the states."""

    def emit(self) -> None:
        out, errors, start = self._out, self._program.errors, self._program.start_state
        out.line("/* Leaves the cursor behind the last header; returns the parser error. */")
        with out.block(f"INA_INLINE uint32_t parse({self._layout.frame.packet} *const p)"):
            for declaration in self._layout.frame.begin:
                out.line(declaration)
            out.line(f"uint32_t error = {errors.get('NoError', 0)};")
            out.line("uint32_t steps = 0;")
            out.line("(void)steps;")
            if start is not None:
                out.line(self._goto(start))
            for plan in self._layout.plan.states:
                self._state(plan)
            out.line("done:")
            out.line(f"p->offset = {self._layout.frame.offset};")
            out.line("return error;")
        out.line()

    def _state(self, plan: StatePlan) -> None:
        state = plan.state
        self._out.line(f"{self._layout.label(state.name)}: // {state.name}", state.source)
        if plan.in_cycle:
            self._out.line(f"if (++steps > {MAX_STEPS}) {self._fail('ParserTimeout')}")
        self._body(plan)
        self._transitions(state)

    def _fail(self, error: str) -> str:
        return f"{{ error = {self._program.errors.get(error, 1)}; goto done; }}"

    def _enough(self, bits: int) -> None:
        self._need(bits)

    def _load(self, header: str, struct: str, layout: TypeLayout) -> None:
        emit_load(layout, struct, self._out, frozenset())

    def _transitions(self, state: ParserState) -> None:
        out = self._out
        if self._as_switch(state):
            with out.block(f"switch ({self._to.expr.value(state.keys[0])})"):
                seen = set()
                for case in state.cases:
                    if case.values and case.values[0][0] not in seen:
                        seen.add(case.values[0][0])
                        out.line(
                            f"case {literal(case.values[0][0])}: {self._goto(case.next_state)}"
                        )
            default = next((case for case in state.cases if not case.values), None)
            out.line(self._goto(default.next_state) if default else self._fail("NoMatch"))
            return
        for case in state.cases:
            condition = self._condition(state, case)
            if not condition:
                out.line(self._goto(case.next_state))
                return
            out.line(f"if ({condition}) {self._goto(case.next_state)}")
        out.line(self._fail("NoMatch") if state.cases else "goto done;")

    def _as_switch(self, state: ParserState) -> bool:
        if len(state.keys) != 1 or state.key_widths[0] > 64:
            return False
        full = (1 << state.key_widths[0]) - 1
        cases = state.cases[:-1] if state.cases and not state.cases[-1].values else state.cases
        return bool(cases) and all(case.values and case.values[0][1] == full for case in cases)

    def _goto(self, state: str | None) -> str:
        return f"goto {self._layout.label(state)};" if state is not None else "goto done;"


class _Main(_Parser):
    """``parse_main``: the main path without a branch but those that leave it."""

    def __init__(self, to: Code, main: MainPath) -> None:
        super().__init__(to)
        self._main = main

    def emit(self) -> None:
        out, main = self._out, self._main
        out.line("/* The path that takes the most bytes; false if the packet goes another way. */")
        for window in main.windows:
            for name, array in (("wanted", window.value), ("mask", window.mask)):
                text = ", ".join(f"{byte:#x}" for byte in array)
                name = f"{name}_{window.first_byte}"
                out.line(f"static const uint8_t {name}[{len(array)}] = {{{text}}};")
        with out.block(f"INA_INLINE bool parse_main({self._layout.frame.packet} *const p)"):
            out.line(f"if (INA_UNLIKELY(p->length < {main.size_bytes})) return false;")
            for condition in main.before:
                test = self._to.expr.boolean(condition)
                out.line(f"if (INA_UNLIKELY(!{test})) return false;")
            for window in main.windows:
                first, size = window.first_byte, len(window.mask)
                at = f"p->data + {first}, wanted_{first}, mask_{first}, {size}"
                out.line(f"if (INA_UNLIKELY(!ina_matches({at}))) return false;")
            for declaration in self._layout.frame.begin:
                out.line(declaration)
            out.line("(void)end;")
            for step in main.steps:
                out.line(f"// {step.plan.state.name}", step.plan.state.source)
                self._body(step.plan)
                self._stay(step)
            out.line(f"p->offset = {self._layout.frame.offset};")
            out.line("return true;")
        out.line()

    def _stay(self, step: MainStep) -> None:
        """Leave the main path unless its case is the first one that matches."""
        if step.taken is None:
            return
        state = step.plan.state
        for case in state.cases:
            settled = step.settled if case == step.taken else frozenset()
            condition = self._condition(state, case, settled) if case.values else ""
            if case == step.taken:
                if condition not in ("", "true"):
                    self._out.line(f"if (INA_UNLIKELY(!({condition}))) return false;")
                return
            self._out.line(f"if (INA_UNLIKELY({condition or 'true'})) return false;")

    def _fail(self, error: str) -> str:
        return "return false;"

    def _enough(self, bits: int) -> None:
        """One check was enough for all."""

    def _load(self, header: str, struct: str, layout: TypeLayout) -> None:
        late = {field for name, field in self._main.late_fields if name == header}
        late |= {ref.field for ref in self._main.unpacked if ref.header == header}
        if header in self._main.late_arrays:
            first = self._main.late_arrays[header].array.first
            late.add(layout.storage.type.fields[first].name)
            self._out.line(f"{self._layout.kept_in(header)} = NULL;")
        emit_load(layout, struct, self._out, late)


def emit_load(layout: TypeLayout, header: str, out: Writer, late: AbstractSet[str]) -> None:
    """The fields of a header at ``at`` into the struct, but for late ones.

    A late array is named by its first field.
    """
    fields = layout.storage.type.fields
    for array, name in layout.arrays.items():
        first = fields[array.first]
        if first.name not in late:
            out.line(
                f"ina_load_array_{array.width_bits}({header}.{name}, "
                f"at + {first.offset_bits // 8}, {array.count});"
            )
    for field in fields:
        if field.name in layout.storage.scalars and field.name not in late:
            value = load_field(field, "at")
            out.line(f"{header}.{layout.members[field.name]} = {_cast(field)}({value});")


def _cast(field: Field) -> str:
    bits = container_bits(field.width_bits)
    return f"(uint{bits}_t)" if bits <= 64 else "(ina_u128)"
