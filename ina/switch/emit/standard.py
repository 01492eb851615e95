"""Metadata to C: the fields of standard_metadata that the architecture sets, and all as 0."""

from __future__ import annotations

from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.ir.data import STANDARD


def set_standard(layout: Layout, out: Writer, field: str, value: str) -> None:
    """A standard_metadata field, if the program has it and any use for it."""
    target = layout.standard(field)
    if target is not None:
        width = layout.program.headers[STANDARD].type.by_name[field].width_bits
        cut = "" if width in (8, 16, 32) or width >= 64 else f" & INA_MASK({width})"
        out.line(f"{target} = ({value}){cut};")


def forget_metadata(layout: Layout, out: Writer) -> None:
    """All of it is 0."""
    for name, header in layout.program.headers.items():
        if header.metadata:
            out.line(f"INA_CLEAR({layout.header(name)});")
