"""Random pipelines: tables with their actions and entries, and blocks that apply them.

The shapes are those that :mod:`ina.switch.passes` looks for: tests at the beginning whose other way
does little, gates, early tables, fields that one branch or only egress changes, former loops.
"""

from __future__ import annotations

from dataclasses import replace

from fuzz.programs.body import (
    AFTER_PARSING,
    EGRESS_SPEC,
    OF_COPIES,
    ON_ARRIVAL,
    PORT_BITS,
    Place,
)
from fuzz.programs.model import (
    META,
    Action,
    Apply,
    Arg,
    Assign,
    Block,
    Call,
    Compare,
    Copy,
    Drop,
    Entry,
    Exit,
    If,
    IsValid,
    Key,
    Not,
    Num,
    Ref,
    Stmt,
    Table,
    Truth,
    type_of,
)
from fuzz.programs.runs import Runs

NOTHING = "NoAction"
_KINDS = ("exact", "exact", "exact", "exact", "lpm", "ternary", "range", "optional")


class Control(Runs):
    """Makes tables and blocks."""

    def declare(self) -> None:
        """Nothing yet."""
        self.actions: list[Action] = [Action(NOTHING, (), ())]
        self.tables: list[Table] = []

    # -- tables --

    def key_field(self, place: Place) -> Ref:
        """What a table matches: mostly of the packet, now and then of a header that may be gone."""
        names = [it for it in self.members() if it in place.valid]
        if not names or self.often(0.15):
            names = self.members()
        kind = self.chance.random()
        if self.changed and self.often(0.35):
            found = self.chance.choice(self.changed)
        elif kind < 0.2:
            found = self.chance.choice(self.refs(META))
        elif kind < 0.3:
            found = self.chance.choice(OF_COPIES if place.is_egress else ON_ARRIVAL)
        elif kind < 0.35:
            return Ref(self.chance.choice(self.members()), "$valid$", 1)
        else:
            found = self.chance.choice(self.refs(self.chance.choice(names)))
        self.hot.append(found)
        return found

    def keys(self, place: Place, exact: bool) -> tuple[Key, ...]:
        """One or two, of which one at most is a longest prefix."""
        made: list[Key] = []
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            field = self.key_field(place)
            kind = "exact" if exact or field.signed else self.chance.choice(_KINDS)
            is_there = any(key.field == field or kind == key.kind == "lpm" for key in made)
            if not is_there:
                made.append(Key(field, kind))
        return tuple(made)

    def entries(self, keys: tuple[Key, ...], calls: list[Call], place: Place) -> tuple[Entry, ...]:
        """Some, each with a key and a priority of its own; of what is not there the key is 0."""
        made: dict[tuple[tuple[int, int], ...], Entry] = {}
        for number in range(self.chance.randint(1, 4)):
            key = tuple(self._match(it, place) for it in keys)
            made.setdefault(key, Entry(key, self.chance.choice(calls), number + 1))
        return tuple(made.values())

    def _match(self, key: Key, place: Place) -> tuple[int, int]:
        width = key.field.width_bits
        full = (1 << width) - 1
        value = self.number(width)
        if key.field.header not in place.valid and self.often(0.5):
            value = 0
        if key.kind == "exact":
            return value, full
        if key.kind == "lpm":
            prefix = self.chance.choice([0, width, width, self.chance.randint(0, width)])
            return value & (full ^ full >> prefix), prefix
        if key.kind == "range":
            other = self.chance.choice([full, value, self.number(width)])
            return min(value, other), max(value, other)
        masks = [0, full] if key.kind == "optional" else [0, full, full, 1, self.number(width)]
        mask = self.chance.choice(masks)
        return value & mask, mask

    def call(self, name: str) -> Call:
        """With arguments."""
        params = next(it.params for it in self.actions if it.name == name)
        return Call(name, tuple(self.number(width) for width in params))

    def _add(self, params: tuple[int, ...], body: Block) -> str:
        name = f"a{len(self.actions)}"
        self.actions.append(Action(name, params, body))
        return name

    def action(self, place: Place) -> str:
        """A new one: what it is given goes into metadata and fields, or something else happens."""
        params = tuple(self.chance.choice([8, 9, 16, 32]) for _ in range(self.chance.randint(0, 2)))
        inside = replace(place, params=params, in_action=True)
        kind = self.chance.random()
        body: list[Stmt] = []
        if kind < 0.5:
            for at, width in enumerate(params or (0,)):
                target = EGRESS_SPEC if self.often(0.25) else self.target(place)
                value = Arg(at, width) if params else self.constant(8)
                if self.often(0.4):
                    target = self.chance.choice([*self.refs(META), EGRESS_SPEC])
                body.append(Assign(target, self.cast(value, target.width_bits, target.signed)))
        elif kind < 0.54:
            body += self.summed(inside) if self.often(0.4) else self.unrolled(inside)
        elif kind < 0.68:
            test, then = self.truth(inside), self.few(inside, 2)
            body.append(If(test, then, self.few(inside, 1) if self.often(0.5) else ()))
        else:
            body += self.few(inside, 3)
        if self.often(0.03):
            body.append(Exit())
        return self._add(params, tuple(body))

    def table(self, place: Place) -> Table:
        """With up to three actions."""
        name = f"T{len(self.tables)}"
        exact = self.often(0.6)
        keys = self.keys(place, exact)
        names = [self.action(place) for _ in range(self.chance.choice([1, 1, 2, 3]))]
        default = NOTHING if self.often(0.7) else self.chance.choice(names)
        entries = self.entries(
            keys, [self.call(self.chance.choice(names)) for _ in range(3)], place
        )
        made = Table(
            name, keys, tuple(dict.fromkeys((*names, default))), self.call(default), entries,
            counted=self.often(0.15), default_const=self.often(0.3),
        )  # fmt: skip
        self.tables.append(made)
        return made

    def gate(self, place: Place) -> Table:
        """An exact one with one action of constants."""
        name = f"T{len(self.tables)}"
        body: list[Stmt] = []
        for _ in range(self.chance.choice([0, 1, 1, 2])):
            kind = self.chance.random()
            target = self.target(place) if kind < 0.5 else self.chance.choice(self.refs(META))
            if kind > 0.9:
                target = EGRESS_SPEC
            if target.header == META:
                self.hot.append(target)
            self.note(target)
            body.append(Assign(target, self.constant(target.width_bits, target.signed)))
        if self.often(0.1):
            body += self.few(replace(place, in_action=True), 1)
        action = self._add((), tuple(body))
        entries = self.entries(keys := self.keys(place, True), [Call(action)], place)
        made = Table(name, keys, (action, NOTHING), Call(NOTHING), entries, self.often(0.05))
        self.tables.append(made)
        return made

    def keyless(self, place: Place) -> Table:
        """One that only has a default action: the same for all copies of a packet."""
        action = self.action(place)
        made = Table(f"T{len(self.tables)}", (), (action,), self.call(action),
                     default_const=self.often(0.3))  # fmt: skip
        self.tables.append(made)
        return made

    def early(self, place: Place) -> Table:
        """An exact one on the packet, whose actions say something in metadata."""
        names = []
        for _ in range(self.chance.choice([1, 1, 2])):
            said = self.chance.sample(self.refs(META)[:6], self.chance.choice([1, 1, 2]))
            self.hot += said
            self.note(*said)
            params = tuple(ref.width_bits for ref in said if not ref.signed and self.often(0.6))
            body: list[Stmt] = []
            for ref in said:
                at = next((n for n, width in enumerate(params) if width == ref.width_bits), None)
                value = self.constant(ref.width_bits, ref.signed)
                body.append(Assign(ref, value if at is None or ref.signed
                                   else Arg(at, ref.width_bits)))  # fmt: skip
            if self.often(0.12):
                body += self.few(replace(place, in_action=True), 1)
            names.append(self._add(params, tuple(body)))
        default = NOTHING if self.often(0.85) else names[0]
        keys = self.keys(place, True)
        entries = self.entries(
            keys, [self.call(self.chance.choice(names)) for _ in range(3)], place
        )
        made = Table(
            f"T{len(self.tables)}", keys, tuple(dict.fromkeys((*names, default))),
            self.call(default), entries, self.often(0.1), self.often(0.3),
        )  # fmt: skip
        self.tables.append(made)
        return made

    # -- blocks --

    def shaped(self, place: Place, budget: int) -> Block:
        """As programs begin that look first whether a packet is sound: few are not."""
        return self._sound(place, self.chance.choice([0, 1, 1, 2, 2, 3]), budget)

    def _sound(self, place: Place, tests: int, budget: int) -> Block:
        made: list[Stmt] = []
        if self.often(0.2):
            more, place = self.validity(place) if self.often(0.5) else self.simple(place)
            made += more
        if not tests:
            return (*made, *self._much(place, budget))
        if self.often(0.5):
            table = self.gate(place)
            rest = self._sound(self._after(place, table), tests - 1, budget)
            made.append(Apply(table.name, rest, self.little(place)))
        else:
            truth = self._usual(place)
            then, otherwise = self.assumed(place, truth)
            rest, little = self._sound(then, tests - 1, budget), self.little(otherwise)
            swapped = self.often(0.2)
            made.append(If(Not(truth), little, rest) if swapped else If(truth, rest, little))
        if self.often(0.25):
            made += self.few(Place(frozenset()), 1)
        return tuple(made)

    def _usual(self, place: Place) -> Truth:
        """What most packets are made to pass."""
        kind = self.chance.random()
        if kind < 0.2 and place.valid:
            return IsValid(self.chance.choice(self.members()))
        if kind < 0.25:
            return Compare("==", AFTER_PARSING[0], Num(0, 1))
        if kind < 0.3:
            return Compare(self.chance.choice(["<", "<=", "!="]), ON_ARRIVAL[0], Num(3, PORT_BITS))
        if kind < 0.4:
            return self.truth(place)
        fields = [ref for it in sorted(place.valid) for ref in self.refs(it)] or self.refs(META)
        ref = self.chance.choice(self.refs(META) if kind < 0.5 else fields)
        self.hot += [ref, ref]
        op = self.chance.choice(["==", "==", "==", "!=", "<="])
        value = Num(0, ref.width_bits, ref.signed) if ref.header == META else None
        return Compare(op, ref, value or self.constant(ref.width_bits, ref.signed))

    def _much(self, place: Place, budget: int) -> Block:
        """Tables that most packets hit, and what they lead to."""
        kind = self.chance.random()
        if kind < 0.2:
            run = self.summed(place) if self.often(0.6) else self.unrolled(place)
            return (*run, *self.block(place, budget))
        if kind < 0.35:
            return (*self.state(place), *self.block(place, budget))
        table = self.early(place) if self.often(0.7) else self.table(place)
        after = self._after(place, table)
        said = tuple(self.few(after, 1)) if self.often(0.3) else ()
        gone = self._unsettled(said)
        inside = replace(after, valid=after.valid - gone)
        if kind < 0.7:
            rest = self.block(inside, budget) or self.few(inside, 2)
            return (Apply(table.name, (*said, *rest), self.little(place)),)
        return (Apply(table.name), *said, *self.block(inside, budget))

    def little(self, place: Place) -> Block:
        """What is done with a packet that is not as it should be."""
        kind = self.chance.random()
        if kind < 0.3:
            return ()
        if kind < 0.5:
            return (Drop(),)
        if kind < 0.9:
            return (Assign(EGRESS_SPEC, Num(self.chance.randrange(8), PORT_BITS)),)
        return self.few(place, 1)

    def assumed(self, place: Place, truth: Truth) -> tuple[Place, Place]:
        """Where it holds, and where it does not."""
        if isinstance(truth, IsValid):
            return place.with_valid(truth.header, True), place.with_valid(truth.header, False)
        if isinstance(truth, Not):
            otherwise, then = self.assumed(place, truth.operand)
            return then, otherwise
        return place, place

    def block(self, place: Place, budget: int) -> Block:
        """About so many parts; one may have the rest of them inside."""
        made: list[Stmt] = []
        while budget > 0:
            budget -= 1
            kind = self.chance.random()
            if kind < 0.13:
                truth = self.truth(place)
                then, otherwise = self.assumed(place, truth)
                rest, little = self.block(then, budget), self.little(otherwise)
                swapped = self.often(0.25)
                made.append(If(Not(truth), little, rest) if swapped else If(truth, rest, little))
                return tuple(made)
            if kind < 0.3:
                made.append(self._gated(place, budget))
                return tuple(made)
            more, place = self.part(place, budget)
            made += more
        return tuple(made)

    def _gated(self, place: Place, budget: int) -> Apply:
        table = self.gate(place) if self.often(0.75) else self.table(place)
        after = self._after(place, table)
        rest, little = self.block(after, budget), self.little(place)
        if not rest and not little:
            rest = self.little(place) or (Drop(),)
        if self.often(0.08):
            return Apply(table.name, little, rest)
        return Apply(table.name, rest, little)

    def _after(self, place: Place, table: Table) -> Place:
        """Nothing is sure of a header that some action removes or copies."""
        names = {it.name: it for it in self.actions}
        valid = place.valid
        for action in table.actions:
            valid -= self._unsettled(names[action].body)
        return replace(place, valid=valid)

    def _unsettled(self, body: Block) -> frozenset[str]:
        found: set[str] = set()
        for stmt in body:
            if isinstance(stmt, If):
                found |= self._unsettled((*stmt.then, *stmt.otherwise))
            name = getattr(stmt, "header", None) or getattr(stmt, "stack", None)
            if isinstance(name, str):
                found |= {it for it in self.members() if it == name or it.startswith(f"{name}[")}
            if isinstance(stmt, Copy):
                found.add(stmt.target)
        return frozenset(found)

    def part(self, place: Place, budget: int) -> tuple[list[Stmt], Place]:
        """A table, a branch, what had been a loop, or simple statements."""
        kind = self.chance.random()
        if kind < 0.3:
            return self._applied(place, budget)
        if kind < 0.5:
            truth = self.truth(place)
            then, otherwise = self.assumed(place, truth)
            first = self.block(then, min(budget, 2)) if self.often(0.4) else self.few(then, 2)
            second = self.few(otherwise, 2) if self.often(0.4) else ()
            made: list[Stmt] = [If(truth, first, second)]
            return made, replace(place, valid=place.valid - self._unsettled(tuple(made)))
        if kind < 0.54:
            run = self.summed(place) if self.often(0.4) else self.unrolled(place)
            return list(run), replace(place, valid=place.valid - self._unsettled(run))
        return self.simple(place)

    def _applied(self, place: Place, budget: int) -> tuple[list[Stmt], Place]:
        table = self.keyless(place) if self.often(0.12) else self.table(place)
        after = self._after(place, table)
        kind = self.chance.random()
        if kind < 0.55:
            return [Apply(table.name)], after
        if kind < 0.8:
            hit, miss = self.few(after, 2), self.few(after, 2) if self.often(0.5) else ()
            made: list[Stmt] = [Apply(table.name, hit, miss)]
        else:
            cases = tuple((name, self.few(after, 2)) for name in table.actions if self.often(0.6))
            made = [Apply(table.name, cases=cases)]
            hit = tuple(stmt for _, block in cases for stmt in block)
            miss = ()
        gone = self._unsettled((*hit, *miss))
        return made, replace(after, valid=after.valid - gone)


def cast_of(body: Runs, source: Ref, target: Ref) -> Assign:
    """``target = source``, whatever their types."""
    assert type_of(source)
    return Assign(target, body.cast(source, target.width_bits, target.signed))
