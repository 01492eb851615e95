"""Maps of the kernel: a program's tables, counters and registers, and how C reaches a frame."""

from __future__ import annotations

from dataclasses import replace

from ina.switch.emit.frame import IN_PLACE, Frame
from ina.switch.emit.memory import Memory
from ina.switch.emit.writer import Writer
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


class Maps(Memory):
    """One map a table, counter and group of registers; default entries are words of one array."""

    entry_type = "ina_entry *"

    def __init__(self, plans: tuple[TablePlan, ...]) -> None:
        """Raises UnsupportedProgramError: a table is none that maps can be."""
        self.defaults: dict[str, int] = {}
        """By table: where its default entries begin, in words."""
        self.default_words = 0
        for plan in plans:
            _check(plan)
            self.defaults[plan.table.name] = self.default_words
            self.default_words += 1 + 2 * entry_words(plan)

    def look_up(self, out: Writer, plan: TablePlan, table: str, entry: str) -> None:
        """See :meth:`Memory.look_up`."""
        defaults = f"ina_defaults + {self.defaults[plan.table.name]}, {entry_words(plan)}"
        if not plan.key_words:
            out.line("hit = false;")
            out.line(f"{entry} = ina_default({defaults});")
            return
        key = "key"
        if plan.lookup is Lookup.LPM:
            width = plan.table.keys[0].width_bits
            is_raw = bool(plan.parts[0].swapped_bytes)
            word = "key[0]" if is_raw else f"__builtin_bswap64(key[0] << {64 - width})"
            out.line(f"const uint64_t network = {word};")
            words = "(uint32_t)network, (uint32_t)(network >> 32)"
            out.line(f"const uint32_t prefix[3] = {{{width}, {words}}};")
            key = "prefix"
        out.line(f"{entry} = ina_look_up(&{table}, {key}, {defaults}, &hit);")

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
        out.line(f"ina_count(&{hits(table)}, {entry}->number, p->length);")

    def count(self, out: Writer, counter: str) -> None:
        """See :meth:`Memory.count`."""
        out.line(f"ina_count(&{counter}, (uint32_t)i, p->length);")

    def element(self, group: str, index: str) -> str:
        """The one that the section around has for itself."""
        return f"{element(group)}[0]"


def hits(table: str) -> str:
    """The map of a table's direct counters."""
    return f"{table}_hits"


def element(group: str) -> str:
    """The variable that points to a group's element, in a section. No name of P4."""
    return f"at_{group}"


def entry_words(plan: TablePlan) -> int:
    """Of an entry: its action and number, and parameters."""
    return 1 + plan.param_words


def _check(plan: TablePlan) -> None:
    table = plan.table
    if plan.lookup is Lookup.SCAN:
        kinds = ", ".join(sorted({key.kind.value for key in table.keys}))
        raise UnsupportedProgramError(
            f"table {table.name!r}, matched by {kinds}", str(table.source)
        )
    if plan.lookup is Lookup.LPM and (
        len(table.keys) > 1 or table.keys[0].width_bits > 64 or table.keys[0].width_bits % 8
    ):
        raise UnsupportedProgramError(
            f"table {table.name!r}, matched by a prefix that is not alone in whole bytes",
            str(table.source),
        )
