"""The parser to C: one label a state, a cursor into the packet, headers copied field by field."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ina.switch.emit_c.expressions import literal
from ina.switch.emit_c.layout import Layout, TypeLayout, container_bits, load_field
from ina.switch.emit_c.statements import Statements
from ina.switch.emit_c.writer import Writer
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import Field, HeaderType
from ina.switch.ir.expr import Expr, Lookahead, StackFieldRef
from ina.switch.ir.program import Case, ParserState, Program
from ina.switch.ir.stmt import Advance, Apply, Extract, Stmt, Verify
from ina.switch.ir.walk import walk
from ina.switch.passes.main_path import MainPath, selected

MAX_STEPS = 4096
"""States that a packet may pass; more is the parser error ParserTimeout."""


def emit_parser(layout: Layout, out: Writer) -> None:
    """``static void parse(...)``: sets ``p->offset``, headers, metadata; returns the error code."""
    emitter = _ParserEmitter(layout, out)
    emitter.emit()
    if layout.main_path is not None:
        emitter.emit_main(layout.main_path)


class _ParserEmitter:
    def __init__(self, layout: Layout, out: Writer) -> None:
        self._layout = layout
        self._out = out
        self._program: Program = layout.program
        self._to = Statements(layout, out, self._no_apply)
        self._errors = self._program.errors
        self._on_main = False
        self._labels = {
            name: f"state_{layout.names.get('label', name)}" for name in self._program.states
        }

    def _no_apply(self, stmt: Apply) -> None:
        raise UnsupportedProgramError("a table in the parser", str(stmt.source))

    def emit(self) -> None:
        out = self._out
        out.line("/* Leaves the cursor behind the last header; returns the parser error. */")
        with out.block("INA_INLINE uint32_t parse(packet *const p)"):
            out.line("const uint8_t *cursor = p->data;")
            out.line("const uint8_t *const end = p->data + p->length;")
            out.line(f"uint32_t error = {self._errors.get('NoError', 0)};")
            out.line("uint32_t steps = 0;")
            out.line("(void)steps;")
            if self._program.start_state is not None:
                out.line(f"goto {self._labels[self._program.start_state]};")
                for name in self._reachable():
                    self._state(self._program.states[name])
            out.line("done:")
            out.line("p->offset = (uint32_t)(cursor - p->data);")
            out.line("return error;")
        out.line()

    def emit_main(self, path: MainPath) -> None:
        """``parse_main``: the main path without a branch but those that leave it."""
        out = self._out
        self._on_main = self._layout.on_main = True
        out.line("/* The path that takes the most bytes; false if the packet goes another way. */")
        wanted = self._wanted(path)
        with out.block("INA_INLINE bool parse_main(packet *const p)"):
            out.line(f"if (INA_UNLIKELY(p->length < {path.size_bytes})) return false;")
            assert self._layout.main is not None
            for condition in self._layout.main.before:
                test = self._to.expr.boolean(condition)
                out.line(f"if (INA_UNLIKELY(!{test})) return false;")
            for first, size in wanted:
                at = f"p->data + {first}, wanted_{first}, mask_{first}, {size}"
                out.line(f"if (INA_UNLIKELY(!ina_matches({at}))) return false;")
            out.line("const uint8_t *cursor = p->data;")
            out.line("const uint8_t *const end = p->data + p->length;")
            out.line("(void)end;")
            for state, taken in path.steps:
                out.line(f"// {state.name}", state.source)
                for stmt in state.body:
                    self._stmt(stmt)
                self._lookaheads(state.keys)
                if taken is not None:
                    self._stay(state, taken)
            out.line("p->offset = (uint32_t)(cursor - p->data);")
            out.line("return true;")
        out.line()
        self._on_main = self._layout.on_main = False

    def _wanted(self, path: MainPath) -> list[tuple[int, int]]:
        """The bytes that make a packet a usual one: parts of it that are compared at once.

        They lie before the first late array, whose bytes may be somewhere else.
        """
        layout = self._layout
        assert layout.main is not None
        mask, value = [0] * path.size_bytes, [0] * path.size_bytes
        for first_bit, width, bits, wanted in layout.main.matches:
            for number in range(width):
                bit, below = first_bit + number, width - 1 - number
                if bits >> below & 1:
                    mask[bit // 8] |= 0x80 >> bit % 8
                    value[bit // 8] |= (wanted >> below & 1) * (0x80 >> bit % 8)
        parts = windows(mask, layout.headers_bytes)
        for first, size in parts:
            for name, array in (("wanted", value), ("mask", mask)):
                text = ", ".join(f"{byte:#x}" for byte in array[first : first + size])
                self._out.line(f"static const uint8_t {name}_{first}[{size}] = {{{text}}};")
        return parts

    def _stay(self, state: ParserState, taken: Case) -> None:
        """Leave the main path unless ``taken`` is the first case that matches."""
        assert self._layout.main_path is not None
        matched = {key for key, _ in selected(self._program, self._layout.main_path, state, taken)}
        for case in state.cases:
            condition = self._condition(state, case) if case.values else ""
            if case is taken and case.values:
                condition = self._condition(state, case, matched)
            if case is taken:
                if condition not in ("", "true"):
                    self._out.line(f"if (INA_UNLIKELY(!({condition}))) return false;")
                return
            self._out.line(f"if (INA_UNLIKELY({condition or 'true'})) return false;")

    def _reachable(self) -> list[str]:
        order: list[str] = []
        pending = [self._program.start_state]
        while pending:
            name = pending.pop()
            if name is None or name in order:
                continue
            order.append(name)
            pending.extend(case.next_state for case in reversed(self._program.states[name].cases))
        return order

    def _fail(self, error: str) -> str:
        if self._on_main:
            return "return false;"
        return f"{{ error = {self._errors.get(error, 1)}; goto done; }}"

    def _need(self, bits: int, source: object = None) -> None:
        count = (bits + 7) // 8
        self._out.line(
            f"if (INA_UNLIKELY((size_t)(end - cursor) < {count})) {self._fail('PacketTooShort')}"
        )

    def _lookaheads(self, node: object) -> None:
        bits = max(
            (n.offset_bits + n.width_bits for n in walk(node) if isinstance(n, Lookahead)),
            default=0,
        )
        if bits:
            self._need(bits)
        for ref in walk(node):
            if isinstance(ref, StackFieldRef) and ref.index is None:
                stack = self._layout.stack(ref.stack)
                self._out.line(f"if (!{stack}_next) {self._fail('StackOutOfBounds')}")

    def _state(self, state: ParserState) -> None:
        out = self._out
        out.line(f"{self._labels[state.name]}: // {state.name}", state.source)
        if self._in_cycle(state.name):
            out.line(f"if (++steps > {MAX_STEPS}) {self._fail('ParserTimeout')}")
        for stmt in state.body:
            self._stmt(stmt)
        self._lookaheads(state.keys)
        self._transitions(state)

    def _in_cycle(self, name: str) -> bool:
        seen: set[str | None] = set()
        pending = [case.next_state for case in self._program.states[name].cases]
        while pending:
            at = pending.pop()
            if at == name:
                return True
            if at is None or at in seen:
                continue
            seen.add(at)
            pending.extend(case.next_state for case in self._program.states[at].cases)
        return False

    def _stmt(self, stmt: Stmt) -> None:
        out, expr = self._out, self._to.expr
        if isinstance(stmt, Extract):
            self._extract(stmt)
        elif isinstance(stmt, Verify):
            self._lookaheads(stmt)
            error = expr.exact(stmt.error, 32)
            condition = expr.boolean(stmt.condition)
            out.line(f"if (!{condition}) {{ error = (uint32_t){error}; goto done; }}", stmt.source)
        elif isinstance(stmt, Advance):
            with out.block("", source=stmt.source):
                out.line(f"const uint64_t skip = {expr.exact(stmt.bits, 64)} / 8;")
                out.line(f"if ((uint64_t)(end - cursor) < skip) {self._fail('PacketTooShort')}")
                out.line("cursor += skip;")
        else:
            self._lookaheads(stmt)
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
            if not self._on_main:  # there, one check is enough for all
                self._need(header_type.width_bits)
            out.line("const uint8_t *const at = cursor;")
            out.line("(void)at;")
            late = self._late(stmt.name) if self._on_main else set()
            if self._on_main and stmt.name in self._layout.late_arrays:
                out.line(f"{self._layout.kept_in(stmt.name)} = NULL;")
            emit_load(self._layout.types[header_type.name], header, out, late)
            out.line(f"{valid} = 1;")
            if not stmt.stack and not self._program.headers[stmt.name].stack:
                out.line(f"{self._layout.wire(stmt.name)} = at;")
            if stmt.stack:
                out.line(f"{name}_next++;")
            out.line(f"cursor += {size};")

    def _late(self, header: str) -> set[str]:
        fields = {field for name, field in self._layout.late if name == header}
        if header in self._layout.late_arrays:
            first = self._layout.late_arrays[header].array.first
            fields.add(self._program.headers[header].type.fields[first].name)
        return fields

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

    def _condition(
        self, state: ParserState, case: Case, matched: AbstractSet[Expr] = frozenset()
    ) -> str:
        """``matched``: keys that have been compared before."""
        terms = []
        for key, width, (value, mask) in zip(
            state.keys, state.key_widths, case.values, strict=False
        ):
            if mask == 0 or key in matched:
                continue
            code = self._key(key, width)
            if mask != (1 << width) - 1:
                code = f"({code} & {literal(mask)})"
            terms.append(f"ina_test({code} == {literal(value)})")
        if case.values and not terms:
            return "true"
        return " && ".join(terms)

    def _key(self, key: Expr, width: int) -> str:
        return self._to.expr.exact(key, min(width, 64))

    def _goto(self, name: str | None) -> str:
        return f"goto {self._labels[name]};" if name is not None else "goto done;"


def windows(mask: list[int], end: int) -> list[tuple[int, int]]:
    """Parts (first byte, bytes) before ``end`` that together hold every byte with a mask.

    64 bytes, or what fits: a vector compares them at once. The last one ends where it may.
    """
    parts: list[tuple[int, int]] = []
    at = 0
    while any(mask[at:]):
        first = next(number for number in range(at, len(mask)) if mask[number])
        last = max(number for number in range(len(mask)) if mask[number])
        if end >= 64 and last >= end - 64 and first >= end - 64 and last < end:
            return [*parts, (end - 64, 64)]
        sizes = (64, 32, 16, 8, 4, 2)
        fits = (n for n in sizes if first + n <= end and last - first >= n // 2)
        size = next(fits, 1)
        parts.append((first, size))
        at = first + size
    return parts


def emit_load(layout: TypeLayout, header: str, out: Writer, late: set[str]) -> None:
    """The fields of a header at ``at`` into the struct, but for late ones.

    A late array is named by its first field.
    """
    header_type: HeaderType = layout.type
    in_array: set[int] = set()
    for array in layout.arrays:
        first = header_type.fields[array.first]
        if first.name not in late:
            out.line(
                f"ina_load_array_{array.width_bits}({header}.{array.name}, "
                f"at + {first.offset_bits // 8}, {array.count});"
            )
        in_array.update(range(array.first, array.first + array.count))
    for number, field in enumerate(header_type.fields):
        if number not in in_array and field.name in layout.members and field.name not in late:
            member = layout.members[field.name]
            value = load_field(field, "at")
            out.line(f"{header}.{member} = {_cast(field)}({value});")


def _cast(field: Field) -> str:
    bits = container_bits(field.width_bits)
    return f"(uint{bits}_t)" if bits <= 64 else "(ina_u128)"
