"""The state block: one struct of tables, counters and registers, all at constant places."""

from __future__ import annotations

from ina.switch.emit.frame import Frame
from ina.switch.emit.memory import Memory
from ina.switch.emit.writer import Writer
from ina.switch.emit_c.tables import KINDS
from ina.switch.passes.tables import TablePlan


class StateBlock(Memory):
    """``state *S``, whose mutex is held."""

    entry_type = "ina_slot *"
    most_hash_bytes = 4608
    puts_arrays = True
    payload = "p->data + p->offset, p->length - p->offset"

    @staticmethod
    def local(group: str) -> str:
        """The variable that points to a group in a block. A loop's own (at_0) are no P4 names."""
        return f"at_{group}"

    def look_up(self, out: Writer, plan: TablePlan, table: str, entry: str) -> None:
        """See :meth:`Memory.look_up`."""
        capacity = plan.table.max_size
        where = f"&S->{table}, S->{table}_slots, S->{table}_index"
        if plan.remembers_last:
            arguments = f"{where}, {plan.param_words}, {capacity}, key[0], &hit"
            out.line(f"{entry} = ina_lookup_again({arguments});")
            return
        key = "key" if plan.key_words else "NULL"
        out.line(
            f"{entry} = ina_lookup({where}, {KINDS[plan.lookup]}, {plan.key_words}, "
            f"{plan.param_words}, {capacity}, {plan.range_words:#x}, {key}, &hit);"
        )

    def action(self, entry: str) -> str:
        """See :meth:`Memory.action`."""
        return f"{entry}->action"

    def word(self, plan: TablePlan, entry: str, word: int) -> str:
        """See :meth:`Memory.word`."""
        return f"{entry}->words[{plan.key_words + word}]"

    def words(self, plan: TablePlan, entry: str) -> str:
        """See :meth:`Memory.words`."""
        return f"ina_slot_params({entry}, {KINDS[plan.lookup]}, {plan.key_words})"

    def count_hit(self, out: Writer, table: str, entry: str) -> None:
        """See :meth:`Memory.count_hit`."""
        out.line(f"{entry}->packets++;")
        out.line(f"{entry}->bytes += p->length;")

    def count(self, out: Writer, counter: str) -> None:
        """See :meth:`Memory.count`."""
        out.line(f"S->{counter}[i].packets++;")
        out.line(f"S->{counter}[i].bytes += p->length;")

    def bits(self, out: Writer, frame: Frame) -> None:
        """See :meth:`Memory.bits`."""
        out.line("ina_bits room;")
        out.line("ina_bits *const bits = &room;")

    def element(self, group: str, index: str) -> str:
        """See :meth:`Memory.element`."""
        return f"{self.local(group)}[{index}]"
