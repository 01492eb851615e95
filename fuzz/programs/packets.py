"""Packets for a program: walks of its own parser, cut ones, and noise."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fuzz.programs.digests import csum16, to_bytes
from fuzz.programs.model import (
    Advance,
    Ahead,
    Case,
    Compare,
    Extract,
    Last,
    Num,
    Packet,
    Program,
    Ref,
    State,
    Table,
    walk,
)

INGRESS_PORTS = 4
_MOST_STATES = 8
_Row = list[int]
"""[width in bits, value]"""


def packets(program: Program, count: int, chance: random.Random) -> Iterator[Packet]:
    """So many."""
    liked = _Liked(program)
    port, data = 0, b""
    for _ in range(count):
        kind = chance.random()
        if kind < 0.08 and data:
            yield port, data  # the same again
            continue
        port = chance.choice([0, 1, 1, 2, INGRESS_PORTS - 1])
        if kind < 0.11:
            data = chance.randbytes(chance.randint(1, 40))
        else:
            data = _Walk(program, liked, chance).packet()
            if kind < 0.18:
                data = data[: chance.randint(1, len(data))]
            elif kind < 0.3:
                data += chance.randbytes(chance.choice([1, 2, 10, 33]))
        yield port, data


class _Liked:
    """What the program compares a field with: such values take its rarer ways."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._all = {0, 1}
        self._own: dict[tuple[str, str], set[int]] = {}
        for node in walk(program):
            if isinstance(node, Compare) and isinstance(node.right, Num):
                self._like(node.left, node.right.value)
            elif isinstance(node, State):
                for case in node.cases:
                    for key, (value, _) in zip(node.keys, case.values, strict=False):
                        self._like(key, value)
        for table in program.tables:
            for entry in table.entries:
                for match, (first, _) in zip(table.keys, entry.key, strict=True):
                    self._like(match.field, first)

    def _like(self, value: object, number: int) -> None:
        if isinstance(value, Ref):
            number &= (1 << value.width_bits) - 1
            self._own.setdefault((value.header, value.field), set()).add(number)
        elif isinstance(value, Last):
            self._own.setdefault((value.stack, value.field), set()).add(number)
        self._all.add(max(number, 0))

    def value(self, header: str, name: str, width_bits: int, chance: random.Random) -> int:
        """For a field of a packet."""
        own, kind = self._own.get((header, name)), chance.random()
        if own and kind < 0.8:
            return chance.choice(sorted(own))
        if kind < 0.92:
            return chance.choice(sorted(self._all)) & (1 << width_bits) - 1
        return chance.getrandbits(width_bits)


class _Walk:
    def __init__(self, program: Program, liked: _Liked, chance: random.Random) -> None:
        self.program, self.liked, self.chance = program, liked, chance
        self.rows: list[_Row] = []
        self.places: dict[tuple[str, str], _Row] = {}
        self.extracted: list[tuple[str, dict[str, _Row]]] = []
        self.selected: set[int] = set()
        self.ahead: tuple[int, int] | None = None  # (width, value) of the next bits

    def packet(self) -> bytes:
        """One that takes a random way."""
        states = {state.name: state for state in self.program.states}
        name = self.program.states[0].name
        for _ in range(_MOST_STATES):
            if not name:
                break
            name = self._state(states[name])
        for table in reversed(self.program.tables):
            if table.entries and self.chance.random() < 0.75:
                self._aim(table)
        for header, rows in self.extracted:
            if self.chance.random() < 0.7:
                self._sum(header, rows)
        if self.ahead is not None:
            self.rows.append(list(self.ahead))
        return to_bytes([(value, width) for width, value in self.rows]) or b"\0"

    def _state(self, state: State) -> str:
        for stmt in state.body:
            if isinstance(stmt, Extract):
                self._extract(stmt.header)
            elif isinstance(stmt, Advance):
                bits = 8 * stmt.count_bytes
                self.rows.append([bits, self.chance.getrandbits(bits)])
        cases = state.cases or (Case((), ""),)
        case = (
            max(cases, key=self._length)
            if self.chance.random() < 0.75
            else self.chance.choice(cases)
        )
        for key, (value, mask) in zip(state.keys, case.values, strict=False):
            if isinstance(key, Ahead):
                self.ahead = key.width_bits, value
            elif isinstance(key, (Ref, Last)):
                name = key.header if isinstance(key, Ref) else key.stack
                row = self.places.get((name, key.field))
                if row is not None:
                    row[1] = row[1] & ~mask | value & mask
                    self.selected.add(id(row))
        return case.state

    def _extract(self, header: str) -> None:
        rows = {}
        for field in self.program.fields(header):
            value = self.liked.value(header, field.name, field.width_bits, self.chance)
            row = [field.width_bits, value]
            self.rows.append(row)
            self.places[header, field.name] = rows[field.name] = row
        if self.ahead is not None:
            width, value = self.ahead
            first = next(iter(rows.values()))
            if first[0] >= width:
                below = first[0] - width
                first[1] = first[1] & (1 << below) - 1 | value << below
            self.ahead = None
        self.extracted.append((header, rows))

    def _aim(self, table: Table) -> None:
        """At one of its entries, but mostly not with what the parser selects on."""
        entry = self.chance.choice(table.entries)
        for key, (first, _) in zip(table.keys, entry.key, strict=True):
            row = self.places.get((key.field.header, key.field.field))
            if row is not None and (id(row) not in self.selected or self.chance.random() < 0.2):
                row[1] = first

    def _length(self, case: Case) -> int:
        """How many states follow, about."""
        names = [state.name for state in self.program.states]
        return len(names) - names.index(case.state) if case.state in names else 0

    def _sum(self, header: str, rows: dict[str, _Row]) -> None:
        """The right checksum, if it is over the header alone."""
        for checksum in self.program.checksums:
            if checksum.target.header != header:
                continue
            if any(ref.header != header for ref in checksum.inputs):
                continue
            inputs = [rows[ref.field] for ref in checksum.inputs]
            data = to_bytes([(value, width) for width, value in inputs])
            rows[checksum.target.field][1] = csum16(data)
