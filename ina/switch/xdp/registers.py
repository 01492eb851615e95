"""Where registers stand in the values of their maps: as the compiler lays out their structs."""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.emit.c_types import container_bits
from ina.switch.emit.layout import GroupLayout, Layout
from ina.switch.emit_ebpf.memory import elements

_LOCK_BYTES = 4
_ARRAY_ALIGNMENT = 64


@dataclass(frozen=True)
class Cell:
    """One register in an element of its group."""

    group: str
    """Its map."""
    offset: int
    size_bytes: int


def cells(layout: Layout) -> dict[str, Cell]:
    """By the register's name."""
    return {name: cell for group in layout.groups for name, cell in _of(group, layout).items()}


def _of(group: GroupLayout, layout: Layout) -> dict[str, Cell]:
    """In the order in which :func:`ina.switch.emit.structs.emit_group` declares them."""
    found: dict[str, Cell] = {}
    at = _LOCK_BYTES
    alone = [run for run in group.group.runs if run not in group.arrays]
    for run in (*alone, *group.arrays):
        size = container_bits(layout.register_bits[run[0]]) // 8
        alignment = _ARRAY_ALIGNMENT if run in group.arrays else size
        at = -(-at // alignment) * alignment
        for name in run:
            found[name] = Cell(elements(group.c_name), at, size)
            at += size
    return found
