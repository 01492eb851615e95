"""From a packet's bytes to ingress, as C."""

from __future__ import annotations

from collections.abc import Callable

from ina.switch.emit.code import Code
from ina.switch.emit.early import find_early, pass_gates
from ina.switch.emit.layout import Layout
from ina.switch.emit.standard import set_standard
from ina.switch.emit.writer import Writer
from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.passes.plan import MainPath


def parse_any(layout: Layout, out: Writer) -> str:
    """The general way from the packet to ingress; returns what ingress has of it but the packet."""
    out.line("const uint32_t parser_error = parse(p);")
    parsed(layout, out)
    verified(layout, out, "verify_checksums")
    return ""


def parse_main(to: Code, main: MainPath, on_parsed: Callable[[], None] = lambda: None) -> str:
    """The same on the main path: returns false, with nothing done, if the packet is none of its
    own. ``on_parsed`` prints what is done when its headers are known."""
    layout, out = to.layout, to.out
    out.line("if (!parse_main(p)) return false;")
    on_parsed()
    out.line(f"const uint32_t parser_error = {layout.program.errors.get('NoError', 0)};")
    parsed(layout, out)
    early = find_early(to)
    pass_gates(to, main.gates)
    verified(layout, out, "verify_checksums_main")
    _ask(to, main.after)
    to.block(main.computed)
    _ask(to, main.of_computed)
    return early


def _ask(to: Code, conditions: tuple[Expr, ...]) -> None:
    for condition in conditions:
        to.out.line(f"if (INA_UNLIKELY(!{to.expr.boolean(condition)})) return false;")


def unpack_late(layout: Layout, out: Writer, main: MainPath) -> None:
    """From here on the main path's fields are where those of other paths are."""
    for header, field in sorted(main.late_fields):
        ref = FieldRef(header, field, layout.program.headers[header].type.by_name[field].width_bits)
        out.line(f"{layout.field(ref, late=False)} = {layout.field(ref, late=True)};")
    for ref in main.entry_fields:
        out.line(f"{layout.field(ref, late=False)} = {layout.field(ref, late=True)};")


def parsed(layout: Layout, out: Writer) -> None:
    """``parser_error`` is known."""
    out.line("(void)parser_error;")
    set_standard(layout, out, "parser_error", "parser_error")
    for name, header in layout.program.headers.items():
        if not header.stack and name in layout.plan.apart:
            path = layout.header(name)
            out.line(f"if (!{layout.valid(name)}) memset(&{path}, 0, sizeof {path});")


def verified(layout: Layout, out: Writer, function: str) -> None:
    """Calls what verifies checksums, if the program has any."""
    if any(checksum.verify for checksum in layout.program.checksums):
        out.line(f"const bool checksum_error = {function}(p);")
        out.line("(void)checksum_error;")
        set_standard(layout, out, "checksum_error", "checksum_error")
