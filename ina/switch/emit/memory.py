"""Where a target keeps a program's state, and how C reaches it: what emitters differ in."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ina.switch.emit.frame import Frame
from ina.switch.emit.writer import Writer
from ina.switch.passes.tables import TablePlan


class Memory(ABC):
    """One target's. It prints code, or says what an expression is.

    Tables, counters and groups of registers go by their C names. An entry is a variable.
    """

    entry_type: str
    """A pointer to a table's entry, as C declares it."""
    puts_arrays = False
    """Whether values of an array go into a hash at once."""
    most_hash_bytes: int
    """INA_HASH_MAX_BYTES of runtime/ina_hash.h."""
    payload: str
    """Arguments: where the bytes are that the parser did not take, and how many. Empty: they cannot
    be summed."""

    @abstractmethod
    def look_up(self, out: Writer, plan: TablePlan, table: str, entry: str) -> None:
        """Sets ``entry``, a variable or its declaration, and ``hit``: to the entry of ``key``, the
        table's words, which are not there if it has none; else to the default one."""

    @abstractmethod
    def action(self, entry: str) -> str:
        """The number of an entry's action."""

    @abstractmethod
    def word(self, plan: TablePlan, entry: str, word: int) -> str:
        """One word of an entry's parameters; the table is exact."""

    @abstractmethod
    def words(self, plan: TablePlan, entry: str) -> str:
        """A pointer to all of them."""

    @abstractmethod
    def count_hit(self, out: Writer, table: str, entry: str) -> None:
        """Counts the packet with an entry of the table."""

    @abstractmethod
    def count(self, out: Writer, counter: str) -> None:
        """Counts the packet with element ``i`` of a counter, which is in range."""

    @abstractmethod
    def bits(self, out: Writer, frame: Frame) -> None:
        """Declares ``bits``, a pointer to room for what is hashed."""

    @abstractmethod
    def element(self, group: str, index: str) -> str:
        """The struct of a group's element, whose index is in range."""
