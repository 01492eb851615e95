"""Something is known of a field, something changes it, something looks at it.

Each pass takes something as known: that the parser selected on a value, that a condition held, that
a gate was hit, that an iteration or a copy of the packet changes nothing. A program of this shape
goes wrong where a pass overlooks that a kind of statement changes it.
"""

from __future__ import annotations

from dataclasses import replace

from fuzz.programs.body import EGRESS_SPEC, OF_COPIES, PORT_BITS, PORTS, Place
from fuzz.programs.control import NOTHING, Control
from fuzz.programs.model import (
    META,
    Apply,
    Assign,
    Block,
    Call,
    Compare,
    Copy,
    Drop,
    Entry,
    Hash,
    If,
    IsValid,
    Key,
    Num,
    Op,
    Read,
    Ref,
    SetValid,
    Stmt,
    Table,
    Truth,
    Write,
)

SEEN = Ref(META, "m5", 32)


class Shapes(Control):
    """Makes such blocks."""

    def matter(self, place: Place) -> Block:
        """A whole ingress, or the most of one."""
        ref = self._subject(place)
        self.hot += [ref, ref]
        known = 0 if ref.header == META and self.often(0.8) else self.number(ref.width_bits)
        if ref in self.selected and self.often(0.8):
            known = self.selected[ref][0]
        inside: list[Stmt] = []
        if self.often(0.25):
            inside += self.few(place, 1)
        if self.often(0.15):
            inside += self.unrolled(place, ref) if self.often(0.7) else self.summed(place)
        changed = self.change(ref, place)
        if self.often(0.3):
            changed.insert(self.chance.choice([0, len(changed)]), self._table_that_counts(place))
        inside += changed
        if self.often(0.2):
            inside += self.few(replace(place, valid=place.valid - {ref.header}), 1)
        for at in range(self.chance.choice([0, 0, 1, 2])):
            inside += self._another(place, at)
        inside += self.look(ref, known, place)
        kind = self.chance.random()
        if kind < 0.3:
            value = Num(self._of_type(known, ref), ref.width_bits, ref.signed)
            return (If(Compare("==", ref, value), tuple(inside), self.little(place)),)
        if kind < 0.5:
            keys = (Key(ref, "exact"),) if self.often(0.5) else self.keys(place, True)
            gate = self._gate_on(keys, self._constants(place), known)
            return (Apply(gate, tuple(inside), self.little(place)),)
        if kind < 0.6:
            gate = self._gate_on(self.keys(place, True), self._constants(place), 0)
            return (Apply(gate, tuple(inside), self.little(place)),)
        return tuple(inside)

    def branched(self, place: Place) -> Block:
        """Fields that some ways change, and others leave as they came, or only egress looks at."""
        fields = [ref for it in sorted(place.valid) for ref in self.refs(it)]
        if not fields:
            return self.matter(place)
        ref, other = self.chance.choice(fields), self.chance.choice(fields)
        table = self.early(place) if self.often(0.7) else self.gate(place)
        place = self._after(place, table)

        def changed() -> Block:
            value = self.value(place, ref.width_bits, ref.signed)
            made: list[Stmt] = [Assign(ref, value)] if self.often(0.7) else []
            if self.registers and self.often(0.3):
                register = self.chance.choice(self.registers)
                stored = self.cast(ref, register.width_bits, False)
                made.append(Write(register.name, Num(0, 32), stored))
            return (*made, *(self.few(place, 1) if self.often(0.2) else ()))

        made: list[Stmt] = [If(self._usual(place), changed(), changed())]
        if self.often(0.4):
            made.append(If(self.truth(place), changed(), self.little(place)))
        made += self.look(self.chance.choice([ref, ref, other]), self.number(4), place)
        kind = self.chance.random()
        if kind < 0.4:
            return (Apply(table.name, tuple(made), self.little(place)),)
        if kind < 0.6 and len(table.actions) > 1:
            cases = tuple((name, changed()) for name in table.actions if self.often(0.7))
            return (Apply(table.name, cases=cases), *made) if cases else (*made,)
        return (Apply(table.name), *made) if kind < 0.85 else (*made, Apply(table.name))

    def _another(self, place: Place, number: int) -> list[Stmt]:
        """Changed and looked at, too: what is seen is a bit that egress may show."""
        ref = self._subject(place)
        known = self.selected[ref][0] if ref in self.selected else 0
        made = self.change(ref, place)
        seen = Assign(SEEN, Op("|", SEEN, Num(1 << number, SEEN.width_bits)))
        other = Assign(SEEN, Op("|", SEEN, Num(16 << number, SEEN.width_bits)))
        return made + self.look(ref, known, place, (seen, other))

    def _subject(self, place: Place) -> Ref:
        """A field of a header that is there, best one that the parser selected on; metadata."""
        selected = [ref for ref in self.selected if ref.header in place.valid]
        kind = self.chance.random()
        if selected and kind < 0.45:
            return self.chance.choice(selected)
        if place.valid and kind < 0.65:
            return self.chance.choice(self.refs(self.chance.choice(sorted(place.valid))))
        return self.chance.choice(self.refs(META)[:5])

    def _of_type(self, value: int, ref: Ref) -> int:
        negative = ref.signed and value >> (ref.width_bits - 1)
        return value - (1 << ref.width_bits) if negative else value

    def _constants(self, place: Place) -> Block:
        made = []
        for _ in range(self.chance.choice([0, 1, 1])):
            target = self.chance.choice(self.refs(META)[:5])
            self.note(target)
            made.append(Assign(target, self.constant(target.width_bits, target.signed)))
        return tuple(made)

    def _gate_on(self, keys: tuple[Key, ...], body: Block, known: int) -> str:
        action = self._add((), body)
        full = [(1 << key.field.width_bits) - 1 for key in keys]
        first = Entry(tuple((known & mask, mask) for mask in full), Call(action), 1)
        other = self.entries(keys, [Call(action)], Place(frozenset()))
        entries = (first, *(it for it in other if it.key != first.key))
        made = Table(f"T{len(self.tables)}", keys, (action, NOTHING), Call(NOTHING), entries)
        self.tables.append(made)
        return made.name

    def _table_that_counts(self, place: Place) -> Apply:
        """Any: so that much is done here."""
        return Apply((self.early(place) if self.often(0.5) else self.table(place)).name)

    # -- what changes it --

    def change(self, ref: Ref, place: Place) -> list[Stmt]:
        """By a statement of some kind, in the pipeline, under a condition or in an action."""
        self.note(ref)
        made = self._changed(ref, place)
        kind = self.chance.random()
        if kind < 0.2:
            action = self._add((), tuple(made))
            table = Table(f"T{len(self.tables)}", (), (action,), Call(action))
            self.tables.append(table)
            return [Apply(table.name)]
        if kind < 0.4:
            action = self._add((), tuple(made))
            keys = self.keys(place, self.often(0.7))
            entries = self.entries(keys, [Call(action)], place)
            name = f"T{len(self.tables)}"
            default = action if self.often(0.3) else NOTHING
            self.tables.append(
                Table(name, keys, (action, NOTHING), Call(default), entries)
            )  # fmt: skip
            return [Apply(name)]
        if kind < 0.5:
            return [If(self.truth(place), tuple(made))]
        return made

    def _changed(self, ref: Ref, place: Place) -> list[Stmt]:
        kind = self.chance.random()
        unsigned = not ref.signed
        if ref.header != META and kind < 0.5:
            return self._header_changed(ref.header)
        if self.registers and kind < 0.65 and unsigned:
            register = self.chance.choice(self.registers)
            cell = Num(0, 32)
            value = Num(self.number(register.width_bits), register.width_bits)
            read = Read(ref, register.name, cell)
            return [Write(register.name, cell, value), read] if self.often(0.6) else [read]
        if kind < 0.72 and unsigned:
            algorithm = self.chance.choice(["crc16", "csum16", "identity"])
            return [Hash(ref, algorithm, 0, (self.ref(place),), 16)]
        if kind < 0.84:
            return list(self.unrolled(place, ref))
        if self.often(0.6):
            return [Assign(ref, self.constant(ref.width_bits, ref.signed))]
        return [Assign(ref, self.value(place, ref.width_bits, ref.signed))]

    def _header_changed(self, header: str) -> list[Stmt]:
        same = [
            it for it in self.members() if self._type(it) == self._type(header) and it != header
        ]
        kind = self.chance.random()
        if same and kind < 0.4:
            other = self.chance.choice(same)
            made: list[Stmt] = [Copy(header, other)]
            if self.often(0.5):
                made.append(SetValid(other, False))
            return [If(IsValid(other), tuple(made))] if self.often(0.5) else made
        if kind < 0.65:
            return [SetValid(header, False), SetValid(header, True)]
        return [SetValid(header, False)]

    # -- what looks at it --

    def look(
        self, ref: Ref, known: int, place: Place, told: tuple[Assign, Assign] | None = None
    ) -> list[Stmt]:
        """By a condition, a table, a value: what is seen is where the packet goes, or ``told``."""
        ports = (Num(port, PORT_BITS) for port in self.chance.sample(range(1, PORTS), 2))
        to_here, to_there = told or tuple(Assign(EGRESS_SPEC, port) for port in ports)
        kind = self.chance.random()
        if kind < 0.4:
            value = Num(self._of_type(known, ref), ref.width_bits, ref.signed)
            op = self.chance.choice(["==", "==", "!=", "<", ">"])
            test: Truth = Compare(op, ref, value)
            if self.often(0.1) and ref.header != META:
                test = IsValid(ref.header)
            then: Block = (to_here,)
            if self.often(0.4):
                then = (self._table_that_counts(place), to_here)
            looked: Stmt = If(test, then, (to_there,))
            if ref.header != META and self.often(0.4):
                looked = If(IsValid(ref.header), (looked,), (Drop(),) if self.often(0.3) else ())
            return [looked]
        if kind < 0.8:
            return [self._looked_up(ref, known, to_here, to_there)]
        if kind < 0.9 and not ref.signed:
            return [Assign(EGRESS_SPEC, self.cast(ref, PORT_BITS, False))]
        return [If(IsValid(ref.header), (to_here,), (to_there,))] if ref.header != META else [
            Assign(EGRESS_SPEC, self.cast(ref, PORT_BITS, False))
        ]  # fmt: skip

    def _looked_up(self, ref: Ref, known: int, here: Assign, there: Assign) -> Apply:
        keys: tuple[Key, ...] = (Key(ref, "exact"),)
        first, second = (self._add((), (stmt,)) for stmt in (here, there))
        full = (1 << ref.width_bits) - 1
        values = dict.fromkeys([known & full, 0, self.number(ref.width_bits)])
        entries = tuple(
            Entry(((value, full),), Call(first if at % 2 == 0 else second), at + 1)
            for at, value in enumerate(values)
        )
        name = f"T{len(self.tables)}"
        self.tables.append(
            Table(name, keys, (first, second, NOTHING), Call(NOTHING), entries)
        )  # fmt: skip
        return Apply(name, hit=(), miss=(there,)) if self.often(0.4) else Apply(name)

    # -- egress --

    def copies(self, place: Place) -> Block:
        """Egress where the copies of a packet differ."""
        ref = self._subject(place)
        own = self.chance.choice(OF_COPIES)
        value = self.chance.choice([1, 2, 3]) if own != OF_COPIES[2] else self.number(4)
        then = tuple(self._changed(ref, replace(place, is_egress=True)))
        made: list[Stmt] = [If(Compare("==", own, Num(value, own.width_bits)), then)]
        names = sorted(place.valid - {ref.header})
        if names and self.often(0.5):
            target = self.chance.choice(self.refs(self.chance.choice(names)))
            source = ref if self.often(0.6) else self.chance.choice(OF_COPIES)
            shown = Assign(target, self.cast(source, target.width_bits, target.signed))
            made.insert(self.chance.choice([0, len(made)]), shown)
        return tuple(made)
