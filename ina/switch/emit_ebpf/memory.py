"""Memory of the kernel: a program's tables, counters and registers, and how C reaches a frame."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import replace

from ina.switch.emit.frame import IN_PLACE, Frame
from ina.switch.emit.memory import Memory
from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.placed import entry_words, placed
from ina.switch.errors import UnsupportedProgramError
from ina.switch.passes.tables import Lookup, TablePlan

COPIED = Frame(
    packet="packet",
    arrays="p->arrays.",
    bytes_at="ina_at(p, {})",
    nowhere="INA_NOWHERE",
    zeros="INA_NOWHERE",
    begin=("uint32_t cursor = 0;", "const uint32_t end = p->length;"),
    at_cursor="ina_at(p, cursor)",
    here="cursor",
    offset="cursor",
)
"""A frame's bytes are copied to memory of the processor's own, and places are numbers: so the
kernel sees that whatever the program does, it touches nothing else."""


IN_FRAME = replace(IN_PLACE, packet="frame_packet")
"""On the main path they are read where they came to lie."""
MOST_AHEAD = 64
"""INA_MOST_AHEAD of runtime/ina_bpf.h: bytes by which a frame's start can move."""


_MOST_PLACED = 1 << 16


class Maps(Memory):
    """One map a counter, a group of registers and a table, but for tables that are placed in an
    array: most of them; default entries are words of another."""

    entry_type = "ina_entry *"
    most_hash_bytes = 64
    payload = ""

    def __init__(self, plans: tuple[TablePlan, ...], resident: Set[str] = frozenset()) -> None:
        """``resident``: names of tables that must be found without calling the kernel."""
        self.defaults: dict[str, int] = {}
        """By table: where its default entries begin, in words."""
        self.default_words = 0
        for plan in plans:
            self.defaults[plan.table.name] = self.default_words
            self.default_words += 1 + 2 * entry_words(plan)
        self.placed = placed(
            plan
            for plan in plans
            if plan.key_words
            and (plan.table.name in resident or not _has_map(plan) or _is_found_fast(plan))
        )
        """By table: those that are no maps."""
        self._counted: list[str] | None = None

    def look_up(self, out: Writer, plan: TablePlan, table: str, entry: str) -> None:
        """See :meth:`Memory.look_up`."""
        words = entry_words(plan)
        defaults = f"ina_defaults + {self.defaults[plan.table.name]}"
        its = self.placed.get(plan.table.name)
        if not plan.key_words:
            out.line("hit = false;")
            out.line(f"{entry} = ina_default({defaults}, {words});")
        elif its is None:
            key = "key"
            if plan.lookup is Lookup.LPM:
                key = "prefix"
                _prefix(out, plan)
            out.line(f"{entry} = ina_look_up(&{entries(table)}, {key}, {defaults}, {words}, &hit);")
        else:
            rest = f"{words}, {defaults}, &hit"
            if its.scans:
                places = f"ina_tables + {its.at}, {its.places}"
                what = f"key, {plan.key_words}, {plan.range_words:#x}"
                out.line(f"{entry} = ina_scan({places}, {what}, {rest});")
            else:
                places = f"ina_tables + {its.at}, {its.index_words}, {its.places}"
                out.line(f"{entry} = ina_find({places}, key, {plan.key_words}, {rest});")

    def action(self, entry: str) -> str:
        """See :meth:`Memory.action`."""
        return f"{entry}->action"

    def word(self, plan: TablePlan, entry: str, word: int) -> str:
        """See :meth:`Memory.word`."""
        return f"{entry}->words[{word}]"

    def words(self, plan: TablePlan, entry: str) -> str:
        """See :meth:`Memory.words`."""
        return f"{entry}->words"

    def count_hit(self, out: Writer, table: str, entry: str) -> None:
        """See :meth:`Memory.count_hit`."""
        self._count(out, hits(table), f"{entry}->number")

    def count(self, out: Writer, counter: str) -> None:
        """See :meth:`Memory.count`."""
        self._count(out, counts(counter), "(uint32_t)i")

    def _count(self, out: Writer, where: str, index: str) -> None:
        if self._counted is None:
            out.line(f"ina_count(&{where}, {index}, p->length);")
        else:
            out.line(f"counted[{len(self._counted)}] = 1 + {index};")
            self._counted.append(where)

    @contextmanager
    def counting_later(self, out: Writer) -> Iterator[Writer]:
        """What is printed to this writer counts nothing itself, but what comes behind it does."""
        counted: list[str] = []
        self._counted = counted
        body = out.beside()
        yield body
        self._counted = None
        if counted:
            zeros = ", ".join(["ina_zero()"] * len(counted))
            out.line(f"uint32_t counted[{len(counted)}] = {{{zeros}}};")
        out.take(body)
        for number, where in enumerate(counted):
            count = f"ina_count(&{where}, counted[{number}] - 1, p->length);"
            out.line(f"if (counted[{number}]) {count}")

    def bits(self, out: Writer, frame: Frame) -> None:
        """See :meth:`Memory.bits`. Raises UnsupportedProgramError: on the main path."""
        if frame.packet != COPIED.packet:
            raise UnsupportedProgramError("a hash over packets that are not copied")
        out.line("ina_bits *const bits = &p->bits;")

    def element(self, group: str, index: str) -> str:
        """The one that the section around has for itself."""
        return f"{element(group)}[0]"


# Maps are variables of a whole file: their names are no others', of maps or within functions.


def entries(table: str) -> str:
    """The map of a table's entries."""
    return f"t_{table}"


def hits(table: str) -> str:
    """The map of a table's direct counters."""
    return f"h_{table}"


def counts(counter: str) -> str:
    """The map of a counter."""
    return f"c_{counter}"


def elements(group: str) -> str:
    """The map of a group of registers."""
    return f"r_{group}"


def element(group: str) -> str:
    """The variable that points to a group's element, in a section. No name of P4."""
    return f"at_{group}"


def _is_found_fast(plan: TablePlan) -> bool:
    """Whether an array is quicker than a map, which is asked by a call: half of the time, measured.
    Of many entries, a map takes less room."""
    return plan.lookup is Lookup.EXACT and plan.table.max_size <= _MOST_PLACED


def _has_map(plan: TablePlan) -> bool:
    """Whether one of the kernel's finds an entry by its key: all of it, or its longest prefix."""
    if plan.lookup is Lookup.LPM:
        width = plan.table.keys[0].width_bits
        return len(plan.table.keys) == 1 and width <= 64 and width % 8 == 0
    return plan.lookup is Lookup.EXACT


def _prefix(out: Writer, plan: TablePlan) -> None:
    """``prefix``: the key as that map wants it."""
    width = plan.table.keys[0].width_bits
    is_raw = bool(plan.parts[0].swapped_bytes)
    word = "key[0]" if is_raw else f"__builtin_bswap64(key[0] << {64 - width})"
    out.line(f"const uint64_t network = {word};")
    words = "(uint32_t)network, (uint32_t)(network >> 32)"
    out.line(f"const uint32_t prefix[3] = {{{width}, {words}}};")
