"""A random program by its seed: headers, a parser, two pipelines, checksums, packets."""

from __future__ import annotations

import random

from fuzz.programs.body import GROUP, PORTS, Place
from fuzz.programs.control import cast_of
from fuzz.programs.model import (
    META,
    Advance,
    Ahead,
    Assign,
    Block,
    Bool,
    Case,
    Checksum,
    Compare,
    Extract,
    Field,
    Group,
    Header,
    IsValid,
    Last,
    Num,
    Program,
    Ref,
    Register,
    State,
    Stmt,
    Trial,
    Truth,
    Value,
    Verify,
    type_of,
)
from fuzz.programs.packets import packets
from fuzz.programs.shapes import SEEN, Shapes

_GROUPS_OF_BITS = ((8,), (8,), (8,), (16,), (16,), (4, 4), (1, 7), (12, 4), (3, 13), (9, 7), (32,),
                   (48,), (-8,), (-16,))  # fmt: skip
"""Fields that together are whole bytes; negative: signed."""
_ARRAY_BITS = (8, 16, 16, 32)
META_FIELDS = (
    Field("m0", 8), Field("m1", 16), Field("m2", 8, True), Field("m3", 1), Field("m4", 9),
    Field("m5", 32),
)  # fmt: skip
PACKETS = 14


def generated(seed: int, count: int = PACKETS) -> Trial:
    """The program and the packets of this seed."""
    chance = random.Random(seed)
    program = _Maker(chance).program()
    return Trial(program, tuple(packets(program, count, chance)), seed)


class _Maker(Shapes):
    def program(self) -> Program:
        """All of it."""
        self.declare()
        self._headers()
        self._state()
        states, always = self._parser()
        place = Place(always)
        budget = self.chance.choice([0, 1, 1, 2, 2, 3, 5])
        kind = self.chance.random()
        if kind < 0.7:
            ingress = self.matter(place) if kind < 0.57 else self.branched(place)
            if self.groups and self.often(0.6):
                ingress = (*ingress, Assign(GROUP, Num(self.groups[0], 16)))
        else:
            ingress = self.shaped(place, budget) if kind < 0.95 else self.block(place, budget + 1)
        egress = self._egress(replace_egress(place))
        types = tuple(self.types.items())
        order = [it.name for it in self.headers]
        if self.often(0.15):
            self.chance.shuffle(order)
        return Program(
            types, tuple(self.headers), self.meta, states, ingress, egress, tuple(order),
            tuple(self.registers), tuple(self.counters), tuple(self.actions), tuple(self.tables),
            self._checksums(), self._multicast(),
        )  # fmt: skip

    # -- declarations --

    def _headers(self) -> None:
        for number in range(self.chance.randint(1, 3)):
            self.types[f"t{number}"] = self._fields(number)
        names = list(self.types)
        for number in range(self.chance.randint(1, 4)):
            earlier = [it.type for it in self.headers]
            again = earlier and self.often(0.45)
            type_ = self.chance.choice(earlier) if again else names[number % len(names)]
            self.headers.append(Header(f"h{number}", type_))
        if self.often(0.1):
            small = [name for name in names if len(self.types[name]) < 6]
            if small:
                type_ = self.chance.choice(small)
                self.headers.append(Header("st", type_, self.chance.choice([2, 3])))

    def _fields(self, number: int) -> tuple[Field, ...]:
        kind = self.chance.random()
        bits: list[int] = []
        if kind < 0.35 and number:
            before = self.chance.choice([(), (8,), (8, 8), (16,)])
            width = self.chance.choice(_ARRAY_BITS)
            row = [Field(f"v{at}", width) for at in range(self.chance.choice([8, 8, 8, 9, 10]))]
            return (*(Field(f"f{at}", it) for at, it in enumerate(before)), *row)
        if kind < 0.6:
            for _ in range(self.chance.randint(1, 2)):
                bits += self.chance.choice([(16,), (8, 8), (4, 12), (32,), (3, 13)])
            made = [Field(f"f{at}", it) for at, it in enumerate(bits)]
            return (*made, Field("csum", 16))
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            bits += self.chance.choice(_GROUPS_OF_BITS)
        return tuple(Field(f"f{at}", abs(it), it < 0) for at, it in enumerate(bits))

    def _state(self) -> None:
        scratch = [Field(f"t{at}", 16) for at in range(self.chance.choice([0, 1, 8]))]
        arrays = [fields for fields in self.types.values() if fields[-1].name.startswith("v")]
        if arrays:
            scratch = [Field(it.name, arrays[0][-1].width_bits) for it in scratch]
        self.meta = (*META_FIELDS, *scratch)
        for number in range(self.chance.choice([0, 1, 1, 2])):
            width = self.chance.choice([8, 16, 32, 5, 48])
            self.registers.append(Register(f"r{number}", self.chance.choice([1, 4, 8]), width))
        if self.often(0.25 if not arrays else 0.6):
            width = arrays[0][-1].width_bits if arrays else 16
            count = len([it for it in arrays[0] if it.name.startswith("v")]) if arrays else 8
            self.registers += [Register(f"row{at}", 4, width) for at in range(count)]
        if self.often(0.4):
            self.counters.append(("c0", self.chance.choice([1, 4])))
        if self.often(0.4):
            self.groups = (1, 2) if self.often(0.3) else (1,)

    def _multicast(self) -> tuple[Group, ...]:
        made = []
        for number in self.groups:
            ports = self.chance.choices(range(PORTS), k=self.chance.choice([1, 2, 3, 3]))
            rids = self.chance.sample([0, 1, 2, 3, 5], len(ports))
            made.append(Group(number, tuple(zip(ports, rids, strict=True))))
        return tuple(made)

    # -- the parser --

    def _parser(self) -> tuple[tuple[State, ...], frozenset[str]]:
        """The states, and what every packet has that is long enough."""
        plain = self.names
        in_packet = [plain[0]] + [it for it in plain[1:] if self.often(0.8)]
        states: list[State] = []
        always: set[str] = set()
        sure = True
        for number, name in enumerate(in_packet):
            if sure:
                always.add(name)
            is_last = number + 1 == len(in_packet)
            after = self._after_last() if is_last else f"s{number + 1}"
            body, keys, cases, sure_here = self._ways(name, number, len(in_packet), after)
            sure = sure and sure_here
            states.append(State("start" if number == 0 else f"s{number}", body, keys, cases))
        if self._after_last():
            states.append(self._stack_state())
        return tuple(states), frozenset(always)

    def _after_last(self) -> str:
        return "labels" if self.headers[-1].stack_size else ""

    def _ways(
        self, name: str, number: int, count: int, after: str
    ) -> tuple[Block, tuple[Value, ...], tuple[Case, ...], bool]:
        body: list[Stmt] = [Extract(name)]
        if self.often(0.12):
            target = self.chance.choice([*self.refs(META), *self.refs(name)])
            source = self.chance.choice(self.refs(name))
            body.append(cast_of(self, source, target))
        if self.often(0.05):
            body.insert(0, Advance(1))
        if self.often(0.05):
            ref = self.chance.choice(self.refs(name))
            wrong = Compare("!=", ref, self.constant(ref.width_bits, ref.signed))
            body.append(Verify(wrong, "ParserInvalidArgument"))
        fields = [ref for ref in self.refs(name) if not ref.signed]
        if not after or not fields or self.often(0.2):
            return tuple(body), (), (Case((), after),), True
        keys: list[Value] = [self.chance.choice(fields)]
        if self.often(0.15):
            keys.append(Ahead(8) if self.often(0.4) else self.chance.choice(fields))
        self.hot += [key for key in keys if isinstance(key, Ref)] * 2
        states = [f"s{at}" for at in range(number + 1, count)] + [""]
        if self._after_last():
            states.append(self._after_last())
        cases = [self._case(keys, after if at == 0 else self.chance.choice(states))
                 for at in range(self.chance.choice([1, 1, 2, 3]))]  # fmt: skip
        if self.often(0.93):
            cases.append(Case((), self.chance.choice(states)))
        return tuple(body), tuple(keys), tuple(cases), False

    def _case(self, keys: list[Value], state: str) -> Case:
        values: list[tuple[int, int]] = []
        for key in keys:
            width = type_of(key)[0]
            mask = (1 << width) - 1
            if self.often(0.12):
                mask = self.chance.choice([0, 1, mask >> 1])
            values.append((self.number(width) & mask, mask))
            if isinstance(key, Ref):
                self.selected.setdefault(key, []).append(values[-1][0])
        return Case(tuple(values), state)

    def _stack_state(self) -> State:
        stack = self.headers[-1]
        fields = [it for it in self.types[stack.type] if not it.signed]
        if not fields:
            return State("labels", (Extract(stack.name),))
        field = self.chance.choice(fields)
        key = Last(stack.name, field.name, field.width_bits)
        return State(
            "labels", (Extract(stack.name),), (key,),
            (self._case([key], "labels"), Case((), "")),
        )  # fmt: skip

    # -- the end --

    def _egress(self, place: Place) -> Block:
        made: list[Stmt] = []
        if self.often(0.5 if self.groups else 0.15):
            made += self.copies(place)
        elif self.often(0.5):
            made += self.block(place, self.chance.choice([1, 1, 2]))
        if self.often(0.7) and place.valid:
            name = self.chance.choice(sorted(place.valid))
            target = self.chance.choice(self.refs(name))
            source = SEEN if self.often(0.6) else self.chance.choice(self.refs(META))
            inner = (cast_of(self, source, target),)
            made.append(inner[0])
        return tuple(made)

    def _checksums(self) -> tuple[Checksum, ...]:
        with_one = [it for it in self.names if any(f.field == "csum" for f in self.refs(it))]
        made = []
        for name in with_one:
            if self.often(0.25):
                continue
            fields = self.refs(name)
            target = next(it for it in fields if it.field == "csum")
            inputs = [it for it in fields if it != target]
            if self.often(0.2):
                self.chance.shuffle(inputs)
            if self.often(0.15):
                other = self.chance.choice([META, *self.names])
                inputs.append(self.chance.choice(self.refs(other)))
            verify = self.often(0.4)
            made.append(Checksum(target, tuple(inputs), self._condition(name), verify,
                                 not verify or self.often(0.6)))  # fmt: skip
        return tuple(made)

    def _condition(self, name: str) -> Truth:
        kind = self.chance.random()
        if kind < 0.4:
            return Bool(True)
        if kind < 0.55:
            return IsValid(name)
        if kind < 0.65:
            return Compare("==", GROUP, Num(0, 16))
        ref = self.chance.choice(self.refs(META) if kind < 0.9 else self.refs(name))
        return Compare(self.chance.choice(["==", "!="]), ref,
                       self.constant(ref.width_bits, ref.signed))  # fmt: skip


def replace_egress(place: Place) -> Place:
    """The same in egress: of later headers nothing is sure."""
    first = frozenset(sorted(place.valid)[:1])
    return Place(first, is_egress=True)


__all__ = ["PACKETS", "Assign", "Ref", "generated"]
