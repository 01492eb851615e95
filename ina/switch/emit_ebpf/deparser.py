"""The deparser to C: valid headers to memory of the processor's own, from which they are put in
front of the payload."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ina.switch.emit.layout import Layout, TypeLayout
from ina.switch.emit.store import copy_bytes, copy_unwritten, emit_store
from ina.switch.emit.writer import Writer
from ina.switch.errors import UnsupportedProgramError
from ina.switch.passes.storage import array_names

MOST_HEADER_BYTES = 2047
"""INA_HEADERS_ROOM of runtime/ina_bpf.h: what is written of one frame."""


def header_bytes(layout: Layout, name: str) -> int:
    """Of one header."""
    return layout.program.headers[name].type.width_bits // 8


def but_arrays(types: TypeLayout, fields: AbstractSet[str]) -> AbstractSet[str]:
    """The fields that are in no array."""
    header_type = types.storage.type
    return fields - {it for array in types.arrays for it in array_names(header_type, array)}


def emit_deparser(
    layout: Layout, out: Writer, function: str, in_frame: AbstractSet[str] = frozenset()
) -> None:
    """Valid headers to ``to``; returns how many bytes they are. ``in_frame``: headers whose arrays
    stand in the frame as they are to leave.

    Raises UnsupportedProgramError: a frame can have too many of them.
    """
    program = layout.program
    most = sum(header_bytes(layout, name) for name in program.deparse)
    if most > MOST_HEADER_BYTES:
        raise UnsupportedProgramError(f"headers of {most} bytes")
    parameters = f"const {layout.frame.packet} *const p, uint8_t *const to"
    with out.block(f"INA_INLINE uint32_t {function}({parameters})"):
        out.line("uint32_t written = 0;")
        for name in program.deparse:
            with out.block(f"if ({layout.valid(name)})"):
                out.line("uint8_t *const at = to + (written & (INA_HEADERS_ROOM - 1));")
                _emit_header(layout, out, name, in_place=name in in_frame)
                out.line(f"written += {header_bytes(layout, name)};")
        out.line("return written;")
    out.line()


def _emit_header(layout: Layout, out: Writer, name: str, *, in_place: bool) -> None:
    header_type = layout.program.headers[name].type
    types = layout.types[header_type.name]
    if layout.program.headers[name].stack:
        emit_store(types, layout.header(name), out)
        return
    wire = layout.wire(name)
    written: AbstractSet[str] = layout.plan.uses[header_type.name].written
    with out.block(f"if ({layout.place(name)} != {layout.frame.nowhere})"):
        if in_place:
            copy_bytes(0, header_bytes(layout, name), wire, out)
            written = but_arrays(types, written)
        else:
            copy_unwritten(types, wire, written, out)
        emit_store(types, layout.header(name), out, written, wire)
    with out.block("else"):
        emit_store(types, layout.header(name), out)
