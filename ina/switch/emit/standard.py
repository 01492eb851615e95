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


def forget_headers(layout: Layout, out: Writer) -> None:
    """None is there, and metadata is 0: of a packet nothing is known but its bytes."""
    for name, header in layout.program.headers.items():
        if not header.metadata and not header.stack:
            out.line(f"{layout.valid(name)} = 0;")
            out.line(f"{layout.place(name)} = {layout.place_before(name)};")
            if name not in layout.plan.apart:
                out.line(f"INA_CLEAR({layout.header(name)});")
    forget_metadata(layout, out)
    for name in layout.program.stacks:
        path = layout.stack(name)
        out.line(f"memset({path}, 0, sizeof {path});")
        out.line(f"memset({path}_valid, 0, sizeof {path}_valid);")
        out.line(f"{path}_next = 0;")


def forget_metadata(layout: Layout, out: Writer) -> None:
    """All of it is 0."""
    for name, header in layout.program.headers.items():
        if header.metadata:
            out.line(f"INA_CLEAR({layout.header(name)});")
