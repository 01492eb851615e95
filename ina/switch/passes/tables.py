"""Tables: how a key is packed into words, and what a lookup can spare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.program import Action, Key, MatchKind, Program, Table
from ina.switch.ir.stmt import Apply, Block
from ina.switch.ir.walk import walk

WORD_BITS = 64
MAX_KEY_WORDS = 64
InPacket = Callable[[FieldRef], bool]
"""Whether code reads a field from the packet's bytes, there where the table is looked up."""


class Lookup(Enum):
    """How an entry is found."""

    EXACT = "exact"
    LPM = "lpm"
    SCAN = "scan"


@dataclass(frozen=True)
class Part:
    """A word of a key field in a packed word: field_word << shift."""

    field: int
    field_word: int
    word: int
    shift: int
    swapped_bytes: int = 0
    """Whole bytes kept in wire order (the first lowest), so that they load as they stand; 0: no."""


Run = tuple[Part, ...]
"""Parts that lie one behind the other in the packet and in a word; others are alone."""


@dataclass(frozen=True)
class TablePlan:
    """A table with its key in 64-bit words: fields share words where they fit, ranges are alone."""

    table: Table
    lookup: Lookup
    key_headers: tuple[tuple[str, ...], ...]
    """By field of the key: the headers it is read from. Of an invalid one, it is 0."""
    parts: tuple[Part, ...]
    key_words: int
    range_words: int
    """A bit for each word of the key that is a range."""
    param_words: int
    """Of the action that has most."""
    actions: tuple[Action, ...]
    """All that an entry or the default can run."""
    runs: tuple[Run, ...]
    main_runs: tuple[Run, ...]
    """On the main path."""
    remembers_last: bool
    """Whether the entry that was found last is tried first: an exact key of less than a word,
    in ingress (copies of one packet that leave have keys of their own)."""
    is_fixed: bool
    """Egress's, without a key: what it does is the same for all copies of a packet."""


def words_of(width_bits: int) -> int:
    """Words that a value takes."""
    return (width_bits + WORD_BITS - 1) // WORD_BITS


def param_offsets(action: Action) -> tuple[int, ...]:
    """Where each parameter's words begin."""
    offsets, at = [], 0
    for param in action.params:
        offsets.append(at)
        at += words_of(param.width_bits)
    return tuple(offsets)


def plan_tables(
    program: Program, in_packet: InPacket, in_packet_on_main: InPacket
) -> tuple[TablePlan, ...]:
    """Of all tables, as they are numbered. Raises UnsupportedProgramError."""
    return tuple(_plan(program, table, in_packet, in_packet_on_main) for table in program.tables)


def _plan(
    program: Program, table: Table, in_packet: InPacket, in_packet_on_main: InPacket
) -> TablePlan:
    parts, range_words = _packed(program, table)
    key_words = parts[-1].word + 1 if parts else 0
    if key_words > MAX_KEY_WORDS:
        raise UnsupportedProgramError(
            f"the very long key of table {table.name!r}", str(table.source)
        )
    lookup = _lookup(table)
    short = 0 < sum(key.width_bits for key in table.keys) < WORD_BITS
    remembers_last = (
        lookup is Lookup.EXACT and key_words == 1 and short and _is_applied(table, program.ingress)
    )
    params = (sum(words_of(p.width_bits) for p in action.params) for action in table.actions)
    return TablePlan(
        table=table,
        lookup=lookup,
        key_headers=tuple(_headers(program, key.value) for key in table.keys),
        parts=parts,
        key_words=key_words,
        range_words=range_words,
        param_words=max(params, default=0),
        actions=program.possible_actions(table),
        runs=_runs(program, table.keys, parts, in_packet),
        main_runs=_runs(program, table.keys, parts, in_packet_on_main),
        remembers_last=remembers_last,
        is_fixed=key_words == 0 and _is_applied(table, program.egress),
    )


def _is_applied(table: Table, block: Block) -> bool:
    return any(isinstance(node, Apply) and node.table == table.name for node in walk(block))


def _lookup(table: Table) -> Lookup:
    kinds = {key.kind for key in table.keys}
    if not kinds <= {MatchKind.EXACT, MatchKind.LPM}:
        return Lookup.SCAN
    return Lookup.LPM if MatchKind.LPM in kinds else Lookup.EXACT


def _packed(program: Program, table: Table) -> tuple[tuple[Part, ...], int]:
    """The parts, and :attr:`TablePlan.range_words`."""
    parts: list[Part] = []
    range_words = 0
    word, used = -1, WORD_BITS
    for number, key in enumerate(table.keys):
        for field_word in range(words_of(key.width_bits)):
            bits = min(WORD_BITS, key.width_bits - WORD_BITS * field_word)
            alone = key.kind is MatchKind.RANGE
            if alone or used + bits > WORD_BITS:
                word, used = word + 1, 0
            swapped = 0 if alone else _wire_bytes(program, key.value)
            parts.append(Part(number, field_word, word, used, swapped))
            used = WORD_BITS if alone else used + bits
            if alone:
                range_words |= 1 << word
    return tuple(parts), range_words


def _headers(program: Program, value: Expr) -> tuple[str, ...]:
    names = {node.header for node in walk(value) if isinstance(node, FieldRef)}
    return tuple(sorted(name for name in names if not program.headers[name].metadata))


def _wire_bytes(program: Program, value: Expr) -> int:
    """Bytes of a key that is one field of whole bytes of a header; else 0."""
    if not isinstance(value, FieldRef) or value.signed or value.width_bits > WORD_BITS:
        return 0
    header = program.headers[value.header]
    if header.metadata:
        return 0
    field = header.type.by_name[value.field]
    whole = field.offset_bits % 8 == 0 and field.width_bits % 8 == 0
    return field.width_bits // 8 if whole else 0


def _runs(
    program: Program, keys: tuple[Key, ...], parts: Iterable[Part], in_packet: InPacket
) -> tuple[Run, ...]:
    runs: list[Run] = []
    for part in parts:
        if runs and _follows(program, keys, runs[-1][-1], part, in_packet):
            runs[-1] = (*runs[-1], part)
        else:
            runs.append((part,))
    return tuple(runs)


def _follows(
    program: Program, keys: tuple[Key, ...], last: Part, part: Part, in_packet: InPacket
) -> bool:
    a, b = keys[last.field].value, keys[part.field].value
    if not (last.swapped_bytes and part.swapped_bytes and last.word == part.word):
        return False
    assert isinstance(a, FieldRef)
    assert isinstance(b, FieldRef)
    by_name = program.headers[a.header].type.by_name
    return (
        a.header == b.header
        and in_packet(a)
        and in_packet(b)
        and by_name[a.field].offset_bits + a.width_bits == by_name[b.field].offset_bits
    )
