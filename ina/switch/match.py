"""Match values of table entries, and their encoding for the C ABI."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

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


def to_words(value: int, width_bits: int) -> list[int]:
    """Little-endian 64-bit words."""
    return [(value >> 64 * i) & (2**64 - 1) for i in range((width_bits + 63) // 64)]


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


def encode_key(table: Table, key: Sequence[KeyMatch]) -> tuple[Any, Any, int | None]:
    """(key words, mask words, prefix length of an LPM table or None) for ``ina_entry``."""
    if len(key) != len(table.keys):
        raise InvalidEntryError(
            f"table {table.name} has {len(table.keys)} key fields, not {len(key)}"
        )
    if not table.keys:
        raise InvalidEntryError(
            f"table {table.name} has no key: only its default action can be set"
        )
    values: list[int] = []
    masks: list[int] = []
    prefix = None
    lpm_table = all(field.kind in (MatchKind.EXACT, MatchKind.LPM) for field in table.keys)
    for field, match in zip(table.keys, key, strict=True):
        value, mask = _value_and_mask(table, field, match)
        values += to_words(value, field.width_bits)
        masks += to_words(mask, field.width_bits)
        if lpm_table and isinstance(match, Lpm):
            prefix = match.prefix_bits
    count = len(values)
    return (ctypes.c_uint64 * count)(*values), (ctypes.c_uint64 * count)(*masks), prefix
