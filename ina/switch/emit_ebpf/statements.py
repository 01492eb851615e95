"""Statements to C for the kernel: critical sections, and what it cannot do."""

from __future__ import annotations

from typing import Any

from ina.switch.emit.statements import Statements
from ina.switch.emit_ebpf.memory import Maps, element, elements
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.stmt import Truncate
from ina.switch.passes.sections import Section

LOCK, UNLOCK = "bpf_spin_lock(&{}->lock);", "bpf_spin_unlock(&{}->lock);"
"""Of an element."""
_REFUSED = {
    Truncate: "truncation",
}


class BpfStatements(Statements):
    """Emits blocks, in which registers stand in sections."""

    def emit(self, stmt: Any) -> None:
        """See :meth:`Statements.emit`."""
        if type(stmt) in _REFUSED:
            raise UnsupportedProgramError(_REFUSED[type(stmt)], str(stmt.source))
        if isinstance(stmt, Section):
            self._section(stmt)
        else:
            super().emit(stmt)

    def _section(self, stmt: Section) -> None:
        """No other processor is at this element meanwhile. An index that is out of range locks the
        last one: reads and writes ask again whether it is in range."""
        group = self.layout.groups[stmt.group.number]
        at = element(group.c_name)
        with self.out.block("", source=stmt.source):
            index = self.expr.exact(stmt.index, 64)
            self.out.line(f"const uint32_t index = ina_min_u64({index}, {stmt.group.size - 1});")
            found = f"bpf_map_lookup_elem(&{elements(group.c_name)}, &index)"
            self.out.line(f"{group.c_name}_slot *const {at} = {found};")
            self.out.line(f"if (!{at}) return; // it is an array's, and there; the kernel asks")
            memory = self.layout.memory
            assert isinstance(memory, Maps)
            with memory.counting_later(self.out) as body:
                body.line(LOCK.format(at))
                inside = type(self)(self.layout, body, self.where, self.numbers)
                inside.block(stmt.body)
                inside._take_along(stmt)
                body.line(UNLOCK.format(at))

    def _take_along(self, stmt: Section) -> None:
        """Values that the packet only remembers to be in this element are stored in it now, if it
        can leave: behind the section they are another packet's."""
        main = self.layout.plan.main
        if main is None or not self.where.late:
            return
        names = {name for run in stmt.group.runs for name in run}
        for header, late in main.late_arrays.items():
            if not any(ref.name in names for ref in late.kept_in.values()):
                continue
            kept_in, array = self.layout.kept_in(header), late.array
            first = self.layout.program.headers[header].type.fields[array.first].offset_bits // 8
            to = f"(uint8_t *){self.layout.wire(header)} + {first}"
            leaves = self.expr.boolean(stmt.leaves)
            with self.out.block(f"if ({kept_in})"):
                store = f"ina_store_array_{array.width_bits}({to}, {kept_in}, {array.count})"
                self.out.line(f"if ({leaves}) {store};")
                self.out.line(f"{kept_in} = NULL;")
