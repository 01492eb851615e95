"""Random expressions and statements of one program under way."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from fuzz.programs.model import (
    DROP_PORT,
    META,
    STANDARD,
    Arg,
    Assign,
    Block,
    Both,
    Choice,
    Compare,
    Copy,
    Count,
    Drop,
    Exit,
    Field,
    Hash,
    Header,
    If,
    Invert,
    IsValid,
    Not,
    Num,
    Op,
    Read,
    Ref,
    Register,
    SetValid,
    Shift,
    Stmt,
    To,
    Truncate,
    Truth,
    Value,
    Write,
    type_of,
)

PORT_BITS = 9
PORTS = 8
MAGIC = (0, 1, 2, 3, 4, 5, 7, 9, 17, 0x22, 0x80, 0xFF)
_ALGORITHMS = ("crc16", "crc32", "csum16", "identity", "xor16")
INDEX_BITS = 32


def standard(name: str, width_bits: int) -> Ref:
    """A field of standard_metadata."""
    return Ref(STANDARD, name, width_bits)


EGRESS_SPEC = standard("egress_spec", PORT_BITS)
GROUP = standard("mcast_grp", 16)
ON_ARRIVAL = (standard("ingress_port", PORT_BITS), standard("packet_length", 32))
AFTER_PARSING = (standard("checksum_error", 1), standard("parser_error", 32))
OF_COPIES = (
    standard("egress_port", PORT_BITS), standard("egress_rid", 16), standard("packet_length", 32),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where a statement stands: what can be read there."""

    valid: frozenset[str]
    """Headers that are surely valid."""
    is_egress: bool = False
    params: tuple[int, ...] = ()
    in_action: bool = False

    def with_valid(self, header: str, valid: bool) -> Place:
        """After a statement or a test."""
        names = self.valid | {header} if valid else self.valid - {header}
        return replace(self, valid=names)


class Body:
    """Knows the declarations, and makes what uses them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.pool = chance.sample(MAGIC, 5)
        self.types: dict[str, tuple[Field, ...]] = {}
        self.headers: list[Header] = []
        self.meta: tuple[Field, ...] = ()
        self.registers: list[Register] = []
        self.counters: list[tuple[str, int]] = []
        self.hot: list[Ref] = []
        """What the parser selects on, tables match and conditions ask: good to be changed."""
        self.selected: dict[Ref, list[int]] = {}
        """What the parser selects on, with the values."""
        self.groups: tuple[int, ...] = ()
        self.changed: list[Ref] = []
        """What statements so far may have changed: good to be looked at."""

    def note(self, *refs: Ref) -> None:
        """They are changed."""
        self.changed = [*self.changed, *refs][-6:]

    def looked_at(self, place: Place) -> list[Ref]:
        """Changed fields that can be read."""
        return [ref for ref in self.changed if ref.header in place.valid or ref.header == META]

    # -- small choices --

    def often(self, share: float) -> bool:
        """With this probability."""
        return self.chance.random() < share

    def number(self, width_bits: int) -> int:
        """Mostly one of the few that this program likes."""
        full = (1 << width_bits) - 1
        kind = self.chance.random()
        if kind < 0.88:
            return self.chance.choice(self.pool) & full
        return full if kind < 0.92 else self.chance.getrandbits(width_bits)

    def constant(self, width_bits: int, signed: bool = False) -> Num:
        """Of a type."""
        value = self.number(width_bits)
        if signed and value >> (width_bits - 1):
            value -= 1 << width_bits
        return Num(value, width_bits, signed)

    @property
    def names(self) -> list[str]:
        """Headers that are no stacks."""
        return [it.name for it in self.headers if not it.stack_size]

    def refs(self, header: str) -> list[Ref]:
        """Fields of a header or metadata."""
        fields = self.types[self._type(header)] if header != META else self.kept
        return [Ref(header, it.name, it.width_bits, it.signed) for it in fields]

    def _type(self, header: str) -> str:
        plain = header.split("[")[0]
        return next(it.type for it in self.headers if it.name == plain)

    @property
    def kept(self) -> tuple[Field, ...]:
        """Metadata but for what only runs of alike statements use, mostly."""
        if self.often(0.03):
            return self.meta
        return tuple(it for it in self.meta if not it.name.startswith("t"))

    def scratch(self) -> list[Ref]:
        """The rest of it."""
        rest = (it for it in self.meta if it.name.startswith("t"))
        return [Ref(META, it.name, it.width_bits) for it in rest]

    def members(self) -> list[str]:
        """All headers, stacks' elements too."""
        found = self.names
        for it in self.headers:
            found += [f"{it.name}[{at}]" for at in range(it.stack_size)]
        return found

    # -- expressions --

    def readable(self, place: Place) -> list[Ref]:
        """Fields that have a value there; now and then of a header that may be invalid."""
        names = [it for it in self.members() if it in place.valid]
        if self.often(0.04):
            names = self.members()
        if self.often(0.5) and names:
            names = [self.chance.choice(names)]
        found = [ref for name in names for ref in self.refs(name)]
        if not found or self.often(0.4):
            found += self.refs(META)
        if self.often(0.12):
            found += OF_COPIES if place.is_egress else (*ON_ARRIVAL, *AFTER_PARSING)
        hot = [ref for ref in self.hot if ref.header in (*place.valid, META)]
        if self.often(0.3) and (changed := self.looked_at(place)):
            return changed
        return hot if hot and self.often(0.35) else found

    def ref(self, place: Place) -> Ref:
        """A field to read."""
        return self.chance.choice(self.readable(place))

    def value(self, place: Place, width_bits: int, signed: bool = False, depth: int = 0) -> Value:
        """Of a type."""
        kind = self.chance.random()
        if place.params and kind < 0.45:
            at = self.chance.randrange(len(place.params))
            return self.cast(Arg(at, place.params[at]), width_bits, signed)
        if kind < 0.6 or depth > 1:
            if self.often(0.5):
                return self.constant(width_bits, signed)
            return self.cast(self.ref(place), width_bits, signed)
        left = self.value(place, width_bits, signed, depth + 1)
        if kind < 0.9:
            op = self.chance.choice(["+", "+", "-", "^", "&", "|", "*", "|+|", "|-|", "<<", ">>"])
            if op in ("<<", ">>"):
                return Op(op, left, Num(self.chance.randrange(width_bits + 2), 8))
            return Op(op, left, self.value(place, width_bits, signed, depth + 1))
        if kind < 0.95:
            return Invert(self.chance.choice("~-"), left)
        return Choice(self.truth(place, depth + 1), left, self.constant(width_bits, signed))

    def cast(self, value: Value, width_bits: int, signed: bool) -> Value:
        """To a type, in P4's small steps: sign and width one at a time."""
        inner, was_signed = type_of(value)
        if was_signed != signed:
            value = To(value, inner, signed)
        return value if inner == width_bits else To(value, width_bits, signed)

    def truth(self, place: Place, depth: int = 0) -> Truth:
        """A condition."""
        kind = self.chance.random()
        if kind < 0.22:
            return IsValid(self.chance.choice(self.members()))
        if kind < 0.3 and depth < 2:
            op = self.chance.choice(["&&", "||"])
            return Both(op, self.truth(place, depth + 1), self.truth(place, depth + 1))
        if kind < 0.36 and depth < 2:
            return Not(self.truth(place, depth + 1))
        ref = self.ref(place)
        op = self.chance.choice(["==", "==", "==", "!=", "<", "<=", ">", ">="])
        if self.often(0.8):
            if ref.header != STANDARD:
                self.hot.append(ref)
            return Compare(op, ref, self.constant(ref.width_bits, ref.signed))
        return Compare(op, ref, self.value(place, ref.width_bits, ref.signed, 1))

    # -- statements --

    def target(self, place: Place) -> Ref:
        """A field to write: one that something depends on, often."""
        found = self._target(place)
        self.note(found)
        return found

    def _target(self, place: Place) -> Ref:
        hot = [ref for ref in self.hot if ref.header in (*place.valid, META)]
        if hot and self.often(0.5):
            return self.chance.choice(hot)
        names = [it for it in self.members() if it in place.valid] or self.members()
        name = META if self.often(0.4) or not names else self.chance.choice(names)
        return self.chance.choice(self.refs(name))

    def send(self, place: Place) -> Stmt:
        """Where the packet goes."""
        kind = self.chance.random()
        if kind < 0.12:
            return Drop()
        if kind < 0.3 and self.groups and not place.is_egress:
            return Assign(GROUP, Num(self.chance.choice(self.groups), 16))
        if kind < 0.45:
            return Assign(EGRESS_SPEC, self.value(place, PORT_BITS))
        port = DROP_PORT if self.often(0.03) else self.chance.randrange(PORTS)
        return Assign(EGRESS_SPEC, Num(port, PORT_BITS))

    def validity(self, place: Place) -> tuple[list[Stmt], Place]:
        """A header comes, goes, or is copied."""
        names = self.members()
        name = self.chance.choice([*names, *(it for it in names if it in place.valid)])
        hot = [ref.header for ref in self.hot if ref.header in names]
        name = self.chance.choice(hot) if hot and self.often(0.5) else name
        kind = self.chance.random()
        self.note(*(ref for ref in self.hot[-4:] if ref.header == name), *self.refs(name)[:2])
        if kind < 0.3:
            return [SetValid(name, False)], place.with_valid(name, False)
        if kind < 0.45:
            made: list[Stmt] = [SetValid(name, False), SetValid(name, True)]
            return made, place.with_valid(name, True)
        if kind < 0.6:
            made = [SetValid(name, True)]
            inside = place.with_valid(name, True)
            if self.often(0.6):
                ref = self.chance.choice(self.refs(name))
                made.append(Assign(ref, self.value(inside, ref.width_bits, ref.signed)))
            return made, inside
        same = [it for it in names if self._type(it) == self._type(name) and it != name]
        if not same:
            return [SetValid(name, True)], place.with_valid(name, True)
        other = self.chance.choice(same)
        copied: list[Stmt] = [Copy(name, other)]
        if self.often(0.5):
            copied.append(SetValid(other, False))
        if place.in_action or self.often(0.4):
            inside = place.with_valid(name, other in place.valid)
            return copied, inside.with_valid(other, False) if len(copied) > 1 else inside
        return [If(IsValid(other), tuple(copied))], place

    def state(self, place: Place) -> list[Stmt]:
        """A register, a counter, a hash."""
        kind = self.chance.random()
        if self.counters and kind < 0.25:
            name, size = self.chance.choice(self.counters)
            return [Count(name, self.index(place, size))]
        if kind < 0.45 or not self.registers:
            return [self.hash(place)]
        register = self.chance.choice(self.registers)
        index = self.index(place, register.size)
        target = self.target(place)
        target = target if not target.signed else self.refs(META)[0]
        made: list[Stmt] = [Read(target, register.name, index)]
        if self.often(0.6):
            value = self.cast(target, register.width_bits, False)
            more = self.value(place, register.width_bits, depth=1)
            made.append(Write(register.name, index, Op("+", value, more)))
        if self.often(0.3):
            made = [Write(register.name, index, self.value(place, register.width_bits))]
        return made

    def index(self, place: Place, size: int) -> Value:
        """Of a register or counter of 2^n cells, in range."""
        if self.often(0.5):
            return Num(self.chance.randrange(size), INDEX_BITS)
        ref = self.ref(replace(place, params=()))
        value = self.cast(ref, INDEX_BITS, False)
        return Op("&", value, Num(size - 1, INDEX_BITS))

    def hash(self, place: Place) -> Stmt:
        """Of fields, of headers that may be invalid too, which are left out then."""
        sources = [*self.members(), META]
        inputs = [self.chance.choice(self.refs(self.chance.choice(sources))) for _ in range(3)]
        target = self.target(place)
        target = target if not target.signed else self.refs(META)[1]
        size = self.chance.choice([4, 16, 1 << min(target.width_bits, 16)])
        algorithm = self.chance.choice(_ALGORITHMS)
        base = self.chance.choice([0, 0, 1])
        return Hash(target, algorithm, base, tuple(inputs[: self.chance.randint(1, 3)]), size)

    def simple(self, place: Place) -> tuple[list[Stmt], Place]:
        """A statement or a few, none a branch but for what guards a copy."""
        kind = self.chance.random()
        if kind < 0.5:
            target = self.target(place)
            value = self.value(place, target.width_bits, target.signed)
            return [Assign(target, value)], place
        if kind < 0.62:
            return [self.send(place)], place
        if kind < 0.84:
            return self.validity(place)
        if kind < 0.86:
            return [Truncate(self.chance.choice([1, 3, 8, 20]))], place
        if kind < 0.88 and not place.in_action:
            return [If(self.truth(place), (Exit(),))], place
        stacks = [it for it in self.headers if it.stack_size]
        if stacks and kind < 0.92:
            stack = self.chance.choice(stacks)
            gone = frozenset(it for it in place.valid if not it.startswith(f"{stack.name}["))
            return [Shift(stack.name, self.chance.choice([-2, -1, -1, 1, 1, 2]))], replace(
                place, valid=gone
            )
        return self.state(place), place

    def few(self, place: Place, most: int) -> Block:
        """Some simple statements."""
        made: list[Stmt] = []
        for _ in range(self.chance.randint(1, most)):
            more, place = self.simple(place)
            made += more
        return tuple(made)
