"""What had been a loop: the same few statements 8 times and more, over fields with numbers.

Most are such that :mod:`ina.switch.passes.reroll` makes a loop of them again. Some iterations
depend on another one: by a field, a header's validity, a register that all of them share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuzz.programs.body import INDEX_BITS, Body, Place
from fuzz.programs.model import (
    META,
    Assign,
    Block,
    Compare,
    Copy,
    Count,
    Hash,
    If,
    IsValid,
    Num,
    Op,
    Read,
    Ref,
    SetValid,
    Stmt,
    Truth,
    Value,
    Write,
)

Iteration = Callable[[int], Block]
"""By its number, some of what an iteration does."""


class Runs(Body):
    """Makes them."""

    header = ""
    """Whose validity a run asks and changes."""

    def unrolled(self, place: Place, subject: Ref | None = None) -> Block:
        """A run; ``subject``: what all iterations may look at, and one kind of them change."""
        arrays = [it for it in self.names if self.array(it)]
        there = [it for it in arrays if it in place.valid] or arrays
        array = self.array(self.chance.choice(there)) if there else self.scratch()
        array = array if len(array) >= 8 else self.refs(META)[:1] * 8
        subject = subject or self.ref(replace(place, params=()))
        self.header = self.chance.choice(self.members())
        parts = [self._part(place, array, subject) for _ in range(self.chance.choice([1, 1, 2, 3]))]
        if self.often(0.35):
            parts.insert(self.chance.randint(0, len(parts)), self._disturbing(place, subject))
        return tuple(stmt for at in range(len(array)) for part in parts for stmt in part(at))

    def _part(self, place: Place, array: list[Ref], subject: Ref) -> Iteration:
        width = array[0].width_bits
        scratch = [it for it in self.scratch()[:1] if it.width_bits == width]
        local = scratch[0] if scratch else array[0]
        kind = self.chance.random()
        fixed = self._same_for_all(place, subject, width)
        if kind < 0.3:
            op = self.chance.choice(["+", "+", "^", "-"])
            return lambda at: (Assign(array[at], Op(op, array[at], fixed)),)
        if kind < 0.4:
            return lambda at: (Assign(local, array[at]), Assign(array[at], Op("+", local, fixed)))
        if kind < 0.7:
            test = self._test(place, subject)
            only_then = self.often(0.6)
            return lambda at: (
                If(test or Compare("==", array[at], Num(0, width)), (Assign(array[at], fixed),),
                   () if only_then else (Assign(array[at], Op("+", array[at], fixed)),)),
            )  # fmt: skip
        rows = [it for it in self.registers if it.name.startswith("row")]
        if len(rows) < len(array) or kind < 0.75:
            others = self.scratch()
            if len(others) < len(array) or others[0].width_bits != width:
                return lambda at: (Assign(array[at], fixed),)
            return lambda at: (Assign(others[at], array[at]),)
        index = self.index(place, rows[0].size) if self.often(0.7) else Num(1, INDEX_BITS)
        bits = rows[0].width_bits
        if kind < 0.85:
            value = self.cast(local, width, False)
            return lambda at: (
                Read(local, rows[at].name, index), Assign(array[at], Op("+", array[at], value)),
            )  # fmt: skip
        return lambda at: (Write(rows[at].name, index, self.cast(array[at], bits, False)),)

    def _same_for_all(self, place: Place, subject: Ref, width: int) -> Value:
        if self.often(0.4):
            return self.cast(subject, width, False)
        if self.often(0.5):
            return self.constant(width)
        return self.cast(self.ref(replace(place, params=())), width, False)

    def _test(self, place: Place, subject: Ref) -> Truth | None:
        """The same for all iterations, unless one changes it; None: of each iteration's element."""
        kind = self.chance.random()
        if kind < 0.3:
            value = self.constant(subject.width_bits, subject.signed)
            return Compare(self.chance.choice(["==", "!="]), subject, value)
        if kind < 0.6:
            return IsValid(self.header)
        return self.truth(place) if kind < 0.8 else None

    def _disturbing(self, place: Place, subject: Ref) -> Iteration:
        """Each iteration changes what others may look at."""
        kind = self.chance.random()
        made: Stmt
        if kind < 0.3:
            value = Op("+", subject, Num(1, subject.width_bits, subject.signed))
            fixed = self.constant(subject.width_bits, subject.signed)
            made = Assign(subject, value if self.often(0.5) else fixed)
        elif kind < 0.6:
            made = SetValid(self.header, self.often(0.4))
        elif kind < 0.75:
            header = self.header
            same = [it for it in self.members() if self._type(it) == self._type(header)]
            made = Copy(header, self.chance.choice(same))
        elif kind < 0.85 and not subject.signed:
            made = Hash(subject, "crc16", 0, (self.ref(replace(place, params=())),), 16)
        elif self.registers and not subject.signed:
            made = Read(subject, self.registers[0].name, Num(0, INDEX_BITS))
        elif self.counters:
            made = Count(self.counters[0][0], Num(0, INDEX_BITS))
        else:
            made = SetValid(self.chance.choice(self.members()), True)
        return lambda _: (made,)

    def summed(self, place: Place) -> Block:
        """Values of the packet into slots, or out of them, as an aggregation does; almost."""
        arrays = [it for it in self.names if self.array(it)]
        rows = [it for it in self.registers if it.name.startswith("row")]
        if not arrays or not rows:
            return self.unrolled(place)
        array = self.array(self.chance.choice(arrays))
        index = self.index(place, rows[0].size)
        scratch = self.scratch() or self.refs(META)
        sum_, kind = scratch[0], self.chance.random()
        sum_ = sum_ if not sum_.signed else self.refs(META)[1]
        made: list[Stmt] = []
        for value, row in zip(array, rows, strict=False):
            read = Read(sum_, row.name, index)
            added = self.cast(value, sum_.width_bits, False)
            total = Assign(sum_, Op("+", sum_, added) if kind < 0.8 else added)
            back = Assign(value, self.cast(sum_, value.width_bits, False))
            write = Write(row.name, index, self.cast(sum_, row.width_bits, False))
            steps: list[Stmt] = [read, total, back, write]
            if kind < 0.2:
                del steps[self.chance.randrange(4) if kind < 0.02 else int(kind * 20)]
            made += steps
        return tuple(made)

    def array(self, header: str) -> list[Ref]:
        """Its fields with numbers."""
        return [ref for ref in self.refs(header) if ref.field.startswith("v")]
