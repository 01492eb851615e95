"""What goes from ingress to egress in front of the frame, as a struct of C."""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.emit.c_types import container, container_bits
from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import FieldRef
from ina.switch.passes.carried import Carried

_FIRST_BYTES = 16
MOST_BYTES = 32
"""Of metadata in front of a frame, whatever the driver."""


@dataclass(frozen=True)
class Carry:
    """``carry``: where the packet goes, how long it was, which headers it has, and fields."""

    what: Carried
    members: tuple[tuple[FieldRef, str], ...]
    """Fields of metadata, widest first."""
    counts_length: bool
    size_bytes: int

    @property
    def is_group_at(self) -> int:
        """Where the last member is."""
        wide = sum(container_bits(ref.width_bits) // 8 for ref, _ in self.members)
        return _FIRST_BYTES + wide + 2 * self.counts_length

    @classmethod
    def of(cls, layout: Layout, what: Carried) -> Carry:
        """Raises UnsupportedProgramError: it is too much."""
        fields = sorted(what.fields, key=lambda ref: -container_bits(ref.width_bits))
        members = tuple((ref, f"field_{number}") for number, ref in enumerate(fields))
        counts = layout.plan.counts_length
        size = (
            _FIRST_BYTES + 2 * counts + 1 + sum(container_bits(it.width_bits) // 8 for it in fields)
        )
        size = -(-size // 4) * 4
        if size > MOST_BYTES or len(what.headers) > 32:
            names = ", ".join(f"{ref.header}.{ref.field}" for ref in fields)
            raise UnsupportedProgramError(
                f"{size} bytes of metadata from ingress to egress ({names}), and {MOST_BYTES} fit"
            )
        return cls(what, members, counts, size)

    def emit_type(self, out: Writer) -> None:
        """The struct."""
        with out.block("typedef struct", tail="} carry;"):
            out.line("uint32_t headers; // a bit for each that is there")
            out.line("uint16_t length;  // of the packet as it came")
            out.line("uint16_t to;      // a port or a group")
            out.line("uint32_t frame;   // its number, where it is copied")
            out.line("uint32_t unused; // what follows may have 64 bits")
            wide = [(ref, name) for ref, name in self.members if ref.width_bits > 16]
            rest = [(ref, name) for ref, name in self.members if ref.width_bits <= 16]
            for ref, name in wide:
                self._member(out, ref, name)
            if self.counts_length:
                out.line("uint16_t told_length;")
            for ref, name in rest:
                self._member(out, ref, name)
            out.line("uint8_t is_group;")
        out.line(f'_Static_assert(sizeof(carry) <= {MOST_BYTES}, "what is carried");')
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

    @staticmethod
    def _member(out: Writer, ref: FieldRef, name: str) -> None:
        out.line(f"{container(ref.width_bits)} {name}; // {ref.header}.{ref.field}")
