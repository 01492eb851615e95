"""What goes from ingress to egress in front of the frame, as a struct of C."""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.emit.c_types import container, container_bits
from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import FieldRef
from ina.switch.passes.carried import Carried

_BYTE = 8
_FIRST_BYTES = 8
MOST_BYTES = 32
"""Of metadata in front of a frame, whatever the driver."""
TO_AT, IS_GROUP_AT, IS_GROUP = 6, 5, 0x80
"""Where a frame's bytes say whereto, and whether that is a group: the highest bit of a byte."""


@dataclass(frozen=True)
class Carry:
    """``carry``: where the packet goes, how long it was, which headers it has, and fields."""

    what: Carried
    members: tuple[tuple[FieldRef, str], ...]
    """Fields of metadata, widest first."""
    counts_length: bool
    size_bytes: int

    @classmethod
    def of(cls, layout: Layout, what: Carried) -> Carry:
        """Raises UnsupportedProgramError: it is too much."""
        fields = sorted(what.fields, key=lambda ref: -ref.width_bits)
        members = tuple((ref, f"field_{number}") for number, ref in enumerate(fields))
        counts = layout.plan.counts_length
        whole = [container_bits(ref.width_bits) for ref in fields if ref.width_bits >= _BYTE]
        parts = _FIRST_BYTES + 2 * counts + (sum(whole) + container_bits(len(what.headers))) // 8
        size = parts + _bytes_of_bits([it.width_bits for it in fields if it.width_bits < _BYTE])
        alignment = max([4, *(bits // 8 for bits in whole)])
        size = -(-size // alignment) * alignment
        if size > MOST_BYTES or len(what.headers) > 32:
            names = ", ".join(f"{ref.header}.{ref.field}" for ref in fields)
            raise UnsupportedProgramError(
                f"{size} bytes of metadata from ingress to egress ({names}), and {MOST_BYTES} fit"
            )
        return cls(what, members, counts, size)

    def emit_type(self, out: Writer) -> None:
        """The struct, its widest members first but for those that are always there."""
        own = [(container_bits(len(self.what.headers)), "headers; // a bit for each that is there")]
        if self.counts_length:
            own.append((16, "told_length;"))
        with out.block("typedef struct", tail="} carry;"):
            out.line("uint32_t frame; // its number, where it is copied")
            out.line("uint16_t length : 15, is_group : 1; // of the packet as it came")
            out.line("uint16_t to; // a port or a group")
            for bits in (128, 64, 32, 16, 8):
                for width, name in own:
                    if width == bits:
                        out.line(f"{container(bits)} {name}")
                for ref, name in self.members:
                    if container_bits(ref.width_bits) == bits:
                        part = f" : {ref.width_bits}" if ref.width_bits < _BYTE else ""
                        comment = f"{ref.header}.{ref.field}"
                        out.line(f"{container(ref.width_bits)} {name}{part}; // {comment}")
        out.line(f'_Static_assert(sizeof(carry) == {self.size_bytes}, "what is carried");')
        out.line()

    def bits(self, headers: tuple[str, ...]) -> int:
        """``headers`` of a frame that has just these."""
        return sum(1 << self.what.headers.index(name) for name in headers)

    def emit_find(self, out: Writer) -> None:
        """Declares ``c``."""
        out.line("const carry *const c = ina_carried(ctx, sizeof(carry));")
        out.line("if (!c) return XDP_ABORTED;")

    def emit_save(self, layout: Layout, out: Writer) -> None:
        """``c`` is filled, but for ``to`` and ``is_group``."""
        bits = [
            f"(uint32_t){layout.valid(name)} << {number}"
            for number, name in enumerate(self.what.headers)
        ]
        out.line(f"c->headers = {' | '.join(bits) or '0'};")
        out.line("c->length = (uint16_t)p->length;")
        if self.counts_length:
            out.line("c->told_length = (uint16_t)p->told_length;")
        for ref, name in self.members:
            out.line(f"c->{name} = {layout.field(ref, late=False)};")

    def emit_restore(self, layout: Layout, out: Writer) -> None:
        """From ``c`` to a packet of which nothing is known."""
        out.line("const uint32_t headers = c->headers;")
        out.line("p->length = c->length;")
        if self.counts_length:
            out.line("p->told_length = c->told_length;")
        for ref, name in self.members:
            out.line(f"{layout.field(ref, late=False)} = c->{name};")


def _bytes_of_bits(widths: list[int]) -> int:
    """Of bit-fields of bytes, in this order."""
    size, left = 0, 0
    for width in widths:
        if width > left:
            size, left = size + 1, _BYTE
        left -= width
    return size
