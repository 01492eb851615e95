"""What the picture of a program shows, gathered from its typed IR.

p4c inlines controls, so a control is known by what it declares: `PoolIngress.admission.jobs` is a
table of control `PoolIngress.admission`. Controls are in the order in which a packet meets them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ina.switch.ir.data import Register
from ina.switch.ir.program import Program, Table
from ina.switch.ir.stmt import Apply, Block, Count, If, Loop, RegisterRead, RegisterWrite, Stmt
from ina.switch.ir.walk import walk

_COMPUTED = "a computed condition"
TABLE, REGISTER, COUNTER = "table", "register", "counter"
"""Kinds: one of each may have the same name."""

_MIN_ARRAY = 4
"""As many registers alike (value_0, value_1, ...) are drawn as one."""


@dataclass
class State:
    """A counter, a register, or several registers alike; ``names`` are the full ones."""

    kind: str  # "register" or "counter"
    names: list[str]
    size: int  # entries of each
    width_bits: int  # 0: a counter
    reads: dict[str, None] = field(default_factory=dict)  # places in the P4 source, in order
    writes: dict[str, None] = field(default_factory=dict)
    users: dict[str, None] = field(default_factory=dict)  # controls, in order


@dataclass(frozen=True)
class TableUse:
    """A table where it is applied, and under which conditions (innermost last)."""

    table: Table
    conditions: tuple[str, ...]


@dataclass
class Control:
    """One control: ``name`` is its full one. ``conditions`` hold for all that it does."""

    name: str
    conditions: tuple[str, ...] | None = None  # None: nothing of it is reached
    tables: list[TableUse] = field(default_factory=list)
    states: list[State] = field(default_factory=list)


@dataclass(frozen=True)
class Pipeline:
    """`ingress` or `egress`, with its controls in order."""

    name: str
    controls: list[Control]


def pipelines(program: Program) -> list[Pipeline]:
    """Both pipelines. What no packet can reach stands in a control at the end, so nothing lacks."""
    found = [_Gatherer(program, program.ingress), _Gatherer(program, program.egress)]
    reached = {name for each in found for name in each.reached}
    rest = _Gatherer(program, ())
    for table in program.tables:
        if (TABLE, table.name) not in reached:
            rest.add_table(table, ("never applied",))
    for register in program.registers:
        if (REGISTER, register.name) not in reached:
            rest.touch(REGISTER, register.name, "", "")
    for counter in program.counters:
        if (COUNTER, counter.name) not in reached:
            rest.touch(COUNTER, counter.name, "", "")
    named = zip(("ingress", "egress", "not used"), (*found, rest), strict=True)
    return [Pipeline(name, each.finish()) for name, each in named if each.controls]


class _Gatherer:
    """Walks over one pipeline in the order of a packet."""

    def __init__(self, program: Program, block: Block) -> None:
        self._program = program
        self._states: dict[tuple[str, str], State] = {}
        self._sizes = {r.name: r for r in program.registers}
        self._counters = {c.name: c for c in program.counters}
        self.controls: dict[str, Control] = {}
        self.reached: set[tuple[str, str]] = set()
        self._block(block, (), "")

    def add_table(self, table: Table, conditions: tuple[str, ...]) -> None:
        self.reached.add((TABLE, table.name))
        control = self._control(_parent(table.name))
        if all(use.table is not table for use in control.tables):
            control.tables.append(TableUse(table, conditions))
        self._holds(control, conditions)

    def touch(self, kind: str, name: str, how: str, place: str, user: str = "") -> None:
        """Notes that the register or counter is read or written at a place."""
        self.reached.add((kind, name))
        state = self._states.get((kind, name))
        if state is None:
            if kind == REGISTER:
                register = self._sizes[name]
                state = State(REGISTER, [name], register.size, register.width_bits)
            else:
                state = State(COUNTER, [name], self._counters[name].size, 0)
            self._states[kind, name] = state
            self._control(_parent(name)).states.append(state)
        for places, wanted in ((state.reads, "read"), (state.writes, "write")):
            if how == wanted:
                places.setdefault(place)
        if how:
            state.users.setdefault(_parent(name) or user)

    def finish(self) -> list[Control]:
        """The controls, with registers that are alike made one."""
        for control in self.controls.values():
            control.states = list(_merge(control.states, self._sizes))
        return list(self.controls.values())

    def _control(self, name: str) -> Control:
        return self.controls.setdefault(name, Control(name))

    def _block(self, block: Block, conditions: tuple[str, ...], user: str) -> None:
        for stmt in block:
            self._statement(stmt, conditions, user)

    def _statement(self, stmt: Stmt, conditions: tuple[str, ...], user: str) -> None:
        match stmt:
            case If():
                text = _condition(stmt)
                self._block(stmt.then, (*conditions, text), user)
                opposite = f"not ({text})" if text != _COMPUTED else "otherwise"
                self._block(stmt.otherwise, (*conditions, opposite), user)
            case Apply():
                self._apply(stmt, conditions)
            case Loop():
                self._block(stmt.body, conditions, user)
            case _:
                self._touches(stmt, conditions, user)

    def _apply(self, stmt: Apply, conditions: tuple[str, ...]) -> None:
        table = self._program.table(stmt.table)
        assert table is not None
        user = _parent(table.name)
        self.add_table(table, conditions)
        for action in table.actions:
            self._touches(action.body, conditions, user)
        name = last(table.name)
        self._block(stmt.on_hit, (*conditions, f"{name} hits"), user)
        self._block(stmt.on_miss, (*conditions, f"{name} misses"), user)
        for index, block in stmt.on_action:
            action_name = last(self._program.actions[index].name)
            self._block(block, (*conditions, f"{name} runs {action_name}"), user)

    def _touches(self, node: object, conditions: tuple[str, ...], user: str) -> None:
        for item in walk(node):
            place = str(getattr(item, "source", ""))
            if isinstance(item, RegisterRead | RegisterWrite):
                how = "read" if isinstance(item, RegisterRead) else "write"
                for name in item.register.array or (item.register.name,):
                    self._touch((REGISTER, name), how, place, conditions, user)
            elif isinstance(item, Count):
                self._touch((COUNTER, item.counter), "write", place, conditions, user)

    def _touch(
        self, what: tuple[str, str], how: str, place: str, conditions: tuple[str, ...], user: str
    ) -> None:
        self.touch(*what, how, place, user)
        self._holds(self._control(_parent(what[1])), conditions)

    def _holds(self, control: Control, conditions: tuple[str, ...]) -> None:
        """What all places of a control have in common is the control's own condition."""
        known = conditions if control.conditions is None else control.conditions
        pairs = itertools.takewhile(
            lambda pair: pair[0] == pair[1], zip(known, conditions, strict=False)
        )
        control.conditions = tuple(one for one, _ in pairs)


def last(name: str) -> str:
    """The part of a name behind its last dot."""
    return name.rpartition(".")[2]


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def _condition(stmt: If) -> str:
    """As the source says it; p4c keeps only the first line of it, or none."""
    text = stmt.source.fragment
    return text if text and text != "if" else str(stmt.source) or _COMPUTED


def _merge(states: list[State], registers: dict[str, Register]) -> Iterator[State]:
    groups: dict[tuple[object, ...], list[State]] = {}
    for state in states:
        stem = re.sub(r"\d+$", "", state.names[0]) if state.kind == REGISTER else state.names[0]
        groups.setdefault((stem, state.kind, state.size, state.width_bits), []).append(state)
    for alike in groups.values():
        if len(alike) < _MIN_ARRAY:
            yield from alike
            continue
        first = alike[0]
        for other in alike[1:]:
            first.names += other.names
            first.reads |= other.reads
            first.writes |= other.writes
            first.users |= other.users
        yield first
