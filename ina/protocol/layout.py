"""Where each header field of :data:`ina.protocol.spec.FIELDS` lies on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from ina.protocol.spec import FIELDS, HEADER_BYTES


@dataclass(frozen=True)
class Place:
    """One field's place: the big-endian word that holds it, and its bits within that word."""

    name: str
    bits: int
    word_offset_bytes: int
    word_bits: int  # 8, 16 or 32
    shift: int  # bits below the field in its word
    header_shift: int  # bits below the field in the header read as one big-endian number
    meaning: str

    @property
    def mask(self) -> int:
        """The largest value the field holds."""
        return (1 << self.bits) - 1


def _place_fields() -> tuple[Place, ...]:
    """Places the fields one after the other; no field may cross the word that its start selects."""
    places: list[Place] = []
    first_bit = 0
    for field in FIELDS:
        end_bit = first_bit + field.bits
        word_offset_bytes = first_bit // 8
        word_bits = next(width for width in (8, 16, 32) if word_offset_bytes * 8 + width >= end_bit)
        word_end_bit = word_offset_bytes * 8 + word_bits
        places.append(
            Place(
                field.name,
                field.bits,
                word_offset_bytes,
                word_bits,
                shift=word_end_bit - end_bit,
                header_shift=HEADER_BYTES * 8 - end_bit,
                meaning=field.meaning,
            )
        )
        first_bit = end_bit
    return tuple(places)


PLACES: tuple[Place, ...] = _place_fields()
"""Every field of the header, in wire order."""
