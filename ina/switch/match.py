"""Match values of table entries, and what a table compares packets with for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from ina.switch.errors import InvalidEntryError
from ina.switch.ir.program import Key, MatchKind, Table


@dataclass(frozen=True)
class Exact:
    """The field equals ``value``."""

    value: int


@dataclass(frozen=True)
class Lpm:
    """The field's first ``prefix_bits`` bits equal those of ``value``."""

    value: int
    prefix_bits: int


@dataclass(frozen=True)
class Ternary:
    """field & mask == value; value has no bit outside the mask."""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """low <= field <= high."""

    low: int
    high: int


@dataclass(frozen=True)
class Optional:
    """The field equals ``value``; None matches anything."""

    value: int | None


KeyMatch = Union[Exact, Lpm, Ternary, Range, Optional]  # noqa: UP007


@dataclass(frozen=True)
class TableKey:
    """An entry's key, one number a field of the table's key."""

    values: tuple[int, ...]
    """Of a field that is matched by range, the least."""
    masks: tuple[int, ...]
    """Of a field that is matched by range, the largest value."""
    prefix_bits: int | None
    """Of the key's LPM field; None: the table is looked up by priority, or exactly."""


def _value_and_mask(table: Table, key: Key, match: KeyMatch) -> tuple[int, int]:
    full = (1 << key.width_bits) - 1
    kind = key.kind
    exact_kinds = (MatchKind.EXACT, MatchKind.TERNARY, MatchKind.OPTIONAL)
    if isinstance(match, Exact) and kind in exact_kinds:
        value, mask = match.value, full
    elif isinstance(match, Lpm) and kind in (MatchKind.LPM, MatchKind.TERNARY):
        if not 0 <= match.prefix_bits <= key.width_bits:
            raise InvalidEntryError(
                f"table {table.name}: prefix of {key.name} is not in 0..{key.width_bits}"
            )
        value, mask = match.value, full ^ (full >> match.prefix_bits)
    elif isinstance(match, Ternary) and kind in (MatchKind.TERNARY, MatchKind.OPTIONAL):
        value, mask = match.value, match.mask
    elif isinstance(match, Optional) and kind in (MatchKind.TERNARY, MatchKind.OPTIONAL):
        value, mask = (0, 0) if match.value is None else (match.value, full)
    elif isinstance(match, Range) and kind is MatchKind.RANGE:
        if not 0 <= match.low <= match.high <= full:
            raise InvalidEntryError(
                f"table {table.name}: {match.low}..{match.high} is no range of {key.name}"
            )
        return match.low, match.high
    else:
        raise InvalidEntryError(
            f"table {table.name}: {key.name} is matched by {kind.value}, not {type(match).__name__}"
        )
    if not 0 <= mask <= full or value & ~mask or value < 0:
        raise InvalidEntryError(
            f"table {table.name}: value {value:#x} of {key.name} does not fit its mask or "
            f"{key.width_bits} bits"
        )
    return value, mask


def table_key(table: Table, key: Sequence[KeyMatch]) -> TableKey:
    """Raises InvalidEntryError: it does not fit the table's key."""
    if len(key) != len(table.keys):
        raise InvalidEntryError(
            f"table {table.name} has {len(table.keys)} key fields, not {len(key)}"
        )
    if not table.keys:
        raise InvalidEntryError(
            f"table {table.name} has no key: only its default action can be set"
        )
    pairs = [_value_and_mask(table, field, it) for field, it in zip(table.keys, key, strict=True)]
    prefix_bits = None
    if all(field.kind in (MatchKind.EXACT, MatchKind.LPM) for field in table.keys):
        prefix_bits = next((it.prefix_bits for it in key if isinstance(it, Lpm)), None)
    values, masks = zip(*pairs, strict=True)
    return TableKey(tuple(values), tuple(masks), prefix_bits)
