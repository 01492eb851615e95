"""What a P4Info says, as plain data: tables, actions, counters, registers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from finsy import P4Schema
from finsy.p4schema import P4MatchType

from ina.p4.errors import P4InfoError


@dataclass(frozen=True)
class Key:
    """One field of a table's key."""

    name: str
    bits: int
    match: str  # "exact", "lpm", "ternary", "range" or "optional"


@dataclass(frozen=True)
class Parameter:
    """One parameter of an action."""

    name: str
    bits: int


@dataclass(frozen=True)
class Action:
    """An action that entries may name."""

    name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Table:
    """A match-action table."""

    name: str
    keys: tuple[Key, ...]
    actions: tuple[str, ...]
    size: int  # entries
    direct_counter: str | None


@dataclass(frozen=True)
class Array:
    """An indirect counter or a register."""

    name: str
    size: int  # entries
    bits: int | None = None  # of a register's entry, if it is a number


@dataclass(frozen=True)
class ProgramInfo:
    """Everything that a control plane can address in a program."""

    name: str
    tables: tuple[Table, ...]
    actions: tuple[Action, ...]
    counters: tuple[Array, ...]
    registers: tuple[Array, ...]


def read_p4info(path: Path) -> ProgramInfo:
    """Read a P4Info file: text protobuf.

    Raises:
        P4InfoError: the file cannot be read or is not P4Info.
    """
    try:
        schema = P4Schema(path)
        name = schema.name or path.name.removesuffix(".p4info.txtpb")  # p4c gives none
    except OSError as error:
        raise P4InfoError(f"{path}: {error.strerror}") from error
    except Exception as error:  # protobuf's parse errors have no common base
        raise P4InfoError(f"{path}: not a P4Info in text form: {error}") from error
    if not any((schema.actions, schema.tables, schema.counters, schema.registers)):
        raise P4InfoError(f"{path}: no P4Info: it has no table, action, counter or register")
    return ProgramInfo(
        name=name,
        tables=tuple(
            Table(
                name=table.name,
                keys=tuple(
                    Key(key.name, key.bitwidth, _match_name(key.match_type))
                    for key in table.match_fields
                ),
                actions=tuple(action.name for action in table.actions),
                size=table.size,
                direct_counter=table.direct_counter.name if table.direct_counter else None,
            )
            for table in schema.tables
        ),
        actions=tuple(
            Action(
                action.name,
                tuple(Parameter(param.name, param.bitwidth) for param in action.params),
            )
            for action in schema.actions
        ),
        counters=tuple(Array(counter.name, counter.size) for counter in schema.counters),
        registers=tuple(
            Array(register.name, register.size, getattr(register.type_spec, "bitwidth", None))
            for register in schema.registers
        ),
    )


def _match_name(match: P4MatchType | str) -> str:
    """The kind of match; a string names one that only its architecture knows."""
    return match if isinstance(match, str) else match.name.lower()
