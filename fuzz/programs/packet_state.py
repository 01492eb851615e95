"""What a packet carries through the interpreter: fields, validity, stacks, the parser's cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class UndefinedError(Exception):
    """The program reads a field of an invalid header: P4 does not say what it is."""


class ParserStopError(Exception):
    """The parser ends with an error of this name."""

    def __init__(self, error: str | int) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True)
class Layout:
    """What does not change from packet to packet."""

    fields: Mapping[str, Mapping[str, tuple[int, bool]]]
    """By header, by field: (width in bits, signed)."""
    metadata: frozenset[str]
    stacks: Mapping[str, tuple[str, ...]]
    """Members of each stack."""

    def size_bytes(self, header: str) -> int:
        """On the wire."""
        return sum(width for width, _ in self.fields[header].values()) // 8


class PacketState:
    """One packet."""

    def __init__(self, layout: Layout, data: bytes) -> None:
        self.layout = layout
        self.data = data
        self.cursor = 0
        self.values: dict[tuple[str, str], int] = {}
        self.valid: set[str] = set(layout.metadata)
        self.next = dict.fromkeys(layout.stacks, 0)
        self.args: tuple[int, ...] = ()
        self.length = len(data)
        """What packet_length is in egress: add_header and remove_header change it."""
        self.most_bytes: int | None = None
        self.is_over = False

    def copy(self) -> PacketState:
        """For a copy of the packet."""
        other = PacketState(self.layout, self.data)
        other.cursor, other.values, other.valid = self.cursor, dict(self.values), set(self.valid)
        other.next, other.length, other.most_bytes = dict(self.next), self.length, self.most_bytes
        return other

    def get(self, header: str, name: str) -> int:
        """A field; of metadata that nobody has set it is 0."""
        if header not in self.valid:
            raise UndefinedError(f"{header}.{name}")
        return self.values.get((header, name), 0)

    def put(self, header: str, name: str, value: int) -> None:
        """Cut to the field's width."""
        width, signed = self.layout.fields[header][name]
        value &= (1 << width) - 1
        if signed and value >> (width - 1):
            value -= 1 << width
        self.values[header, name] = value

    def set_valid(self, header: str, valid: bool) -> None:
        """A header that becomes valid is all 0."""
        size = self.layout.size_bytes(header)
        if valid and header not in self.valid:
            self.clear(header)
            self.valid.add(header)
            self.length += size
        elif not valid and header in self.valid:
            self.valid.discard(header)
            self.length -= size

    def clear(self, header: str) -> None:
        """All fields 0."""
        for name in self.layout.fields[header]:
            self.values[header, name] = 0

    def copy_header(self, target: str, value: str) -> None:
        """Fields and validity."""
        if value not in self.valid:
            self.valid.discard(target)
            return
        self.valid.add(target)
        names = zip(self.layout.fields[target], self.layout.fields[value], strict=True)
        for name, other in names:
            self.values[target, name] = self.values.get((value, other), 0)

    def shift(self, stack: str, count: int) -> None:
        """push_front, or pop_front if it is negative."""
        members = self.layout.stacks[stack]
        size = len(members)
        before = [
            ({name: self.values.get((it, name), 0) for name in self.layout.fields[it]},
             it in self.valid)
            for it in members
        ]  # fmt: skip
        for at, member in enumerate(members):
            source = at - count
            fields, valid = before[source] if 0 <= source < size else ({}, False)
            for name in self.layout.fields[member]:
                self.values[member, name] = fields.get(name, 0)
            (self.valid.add if valid else self.valid.discard)(member)
        self.next[stack] = max(0, min(self.next[stack] + count, size))

    # -- the parser --

    def ahead(self, offset_bits: int, width_bits: int) -> int:
        """Bits behind the cursor."""
        end = 8 * self.cursor + offset_bits + width_bits
        if end > 8 * len(self.data):
            raise ParserStopError("PacketTooShort")
        number = int.from_bytes(self.data[: (end + 7) // 8], "big")
        return number >> (-end % 8) & (1 << width_bits) - 1

    def extract(self, header: str) -> None:
        """Of the packet, or PacketTooShort."""
        size = self.layout.size_bytes(header)
        if self.cursor + size > len(self.data):
            raise ParserStopError("PacketTooShort")
        left = 8 * size
        number = int.from_bytes(self.data[self.cursor : self.cursor + size], "big")
        for name, (width, _) in self.layout.fields[header].items():
            left -= width
            self.put(header, name, number >> left)
        self.valid.add(header)
        self.cursor += size

    def advance(self, bits: int) -> None:
        """Skip."""
        if self.cursor + bits // 8 > len(self.data):
            raise ParserStopError("PacketTooShort")
        self.cursor += bits // 8

    def last(self, stack: str) -> str:
        """The member that was extracted last."""
        if not self.next[stack]:
            raise ParserStopError("StackOutOfBounds")
        return self.layout.stacks[stack][self.next[stack] - 1]

    def emit(self, order: list[str]) -> bytes:
        """Valid headers, then what the parser left."""
        parts = []
        for header in order:
            if header in self.valid:
                values = 0
                for name, (width, _) in self.layout.fields[header].items():
                    values = values << width | self.values.get((header, name), 0) & (1 << width) - 1
                parts.append(values.to_bytes(self.layout.size_bytes(header), "big"))
        whole = b"".join(parts) + self.data[self.cursor :]
        return whole if self.most_bytes is None else whole[: self.most_bytes]
