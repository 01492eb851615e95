"""Where each header field of :data:`ina.protocol.spec.FIELDS` lies on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from ina.protocol.spec import FIELDS, HEADER_BYTES, Field

WORD_BITS = (8, 16, 32)


@dataclass(frozen=True)
class FieldLayout:
    """Where one field lies: the big-endian word that holds it, and its bits within that word."""

    name: str
    bits: int
    meaning: str
    word_offset_bytes: int
    word_bits: int
    shift: int  # bits below the field in its word
    header_shift: int  # bits below the field in the header read as one big-endian number

    @property
    def mask(self) -> int:
        """The largest value the field holds."""
        return (1 << self.bits) - 1


def _words() -> list[list[Field]]:
    """Splits the fields into machine words: 4 + 4 bits make a byte, 4 + 12 make a 16-bit word."""
    words: list[list[Field]] = [[]]
    for field in FIELDS:
        if sum(other.bits for other in words[-1]) in WORD_BITS:
            words.append([])
        words[-1].append(field)
    return words


def _lay_out_fields() -> tuple[FieldLayout, ...]:
    layout: list[FieldLayout] = []
    word_offset_bytes = 0
    for fields in _words():
        word_bits = sum(field.bits for field in fields)
        if word_bits not in WORD_BITS:
            raise AssertionError(f"fields {fields} do not fill a machine word")
        word_end_bit = word_offset_bytes * 8 + word_bits
        shift = word_bits
        for field in fields:
            shift -= field.bits
            header_shift = HEADER_BYTES * 8 - word_end_bit + shift
            layout.append(
                FieldLayout(
                    field.name,
                    field.bits,
                    field.meaning,
                    word_offset_bytes,
                    word_bits,
                    shift,
                    header_shift,
                )
            )
        word_offset_bytes += word_bits // 8
    return tuple(layout)


LAYOUT: tuple[FieldLayout, ...] = _lay_out_fields()
"""Every field of the header, in wire order."""
