"""A whole program: parser, tables and actions, two pipelines, checksums, deparser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ina.switch.ir.data import Counter, Header, Register, Stack
from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.source import UNKNOWN, Source
from ina.switch.ir.stmt import Block, HashInput
from ina.switch.ir.turns import NO_TURNS, Turns


class MatchKind(str, Enum):
    """How a key field matches. OPTIONAL is TERNARY with a full or an empty mask."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


@dataclass(frozen=True)
class Key:
    """One key field. A field of an invalid header is looked up as 0."""

    name: str
    width_bits: int
    kind: MatchKind
    value: Expr


@dataclass(frozen=True)
class Param:
    """One parameter of an action."""

    name: str
    width_bits: int


@dataclass(frozen=True)
class Action:
    """An action; ``index`` is its number in the program (names may repeat, indices do not)."""

    name: str
    index: int
    params: tuple[Param, ...]
    body: Block
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class KeyValue:
    """One field of an entry. exact: value; lpm: value/prefix_bits; ternary: value, mask;
    range: value (low) and mask (high)."""

    value: int
    mask: int = -1


@dataclass(frozen=True)
class ActionCall:
    """An action with its arguments."""

    action: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class ConstEntry:
    """A constant entry; larger priority wins, for LPM it is the prefix length."""

    key: tuple[KeyValue, ...]
    call: ActionCall
    priority: int


@dataclass(frozen=True)
class Table:
    """A match-action table; ``kind``: its fields' widest (exact < lpm < ternary < range)."""

    name: str
    index: int
    kind: MatchKind
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    default: ActionCall
    default_is_const: bool
    max_size: int
    has_direct_counter: bool
    entries: tuple[ConstEntry, ...] = ()
    is_const: bool = False
    direct_counter: str = ""
    source: Source = field(default=UNKNOWN, compare=False)

    def action(self, name: str) -> Action | None:
        """The table's action of this name."""
        return next((action for action in self.actions if action.name == name), None)


@dataclass(frozen=True)
class SelectCase:
    """A transition: taken when every key & mask == value. No values: always."""

    values: tuple[tuple[int, int], ...]
    next_state: str | None


@dataclass(frozen=True)
class ParserState:
    """Statements, then the first case that matches; none is the parser error NoMatch."""

    name: str
    body: Block
    keys: tuple[Expr, ...]
    key_widths: tuple[int, ...]
    cases: tuple[SelectCase, ...]
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Checksum:
    """A csum16 over ``inputs`` in ``target``: verified after the parser, updated before sending."""

    target: FieldRef
    inputs: tuple[HashInput, ...]
    condition: Expr | None
    verify: bool
    update: bool
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Program:
    """A v1model program. Lists are numbered as in the C ABI."""

    name: str
    headers: Mapping[str, Header]
    stacks: Mapping[str, Stack]
    registers: tuple[Register, ...]
    counters: tuple[Counter, ...]
    actions: tuple[Action, ...]
    tables: tuple[Table, ...]
    errors: Mapping[str, int]
    start_state: str | None
    states: Mapping[str, ParserState]
    ingress: Block
    egress: Block
    checksums: tuple[Checksum, ...]
    deparse: tuple[str, ...]
    folded: tuple[Table, ...] = ()
    """Tables without key whose default action is constant: it stands in the pipelines itself."""
    turns: Turns = NO_TURNS
    """What packets do beside passing once."""

    def table(self, name: str) -> Table | None:
        """The table of this name."""
        return next((table for table in self.tables if table.name == name), None)

    def possible_actions(self, table: Table) -> tuple[Action, ...]:
        """What the table can run: its actions, and the default one where it is none of them."""
        default = self.actions[table.default.action]
        own = any(action.index == default.index for action in table.actions)
        return table.actions if own else (*table.actions, default)
