"""From a packet's bytes to ingress, as C."""

from __future__ import annotations

from ina.switch.emit.layout import Layout
from ina.switch.emit.standard import set_standard
from ina.switch.emit.writer import Writer


def parse_any(layout: Layout, out: Writer) -> str:
    """The general way from the packet to ingress; returns what ingress has of it but the packet."""
    out.line("const uint32_t parser_error = parse(p);")
    parsed(layout, out)
    verified(layout, out, "verify_checksums")
    return ""


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
