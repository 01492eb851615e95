"""How generated C reaches a packet's bytes: what emitters differ in, beside :mod:`.memory`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """Spellings. A *place* is what a packet keeps of where a header stood in it."""

    packet: str
    """The struct of a packet."""
    arrays: str
    """Before the members of ``packet_arrays``."""
    bytes_at: str
    """A pointer to what stands at place ``{}``."""
    nowhere: str
    """The place of a header that was not extracted; its fields are never read where they stood."""
    zeros: str
    """The same, of one whose fields are: they read 0."""
    begin: tuple[str, str]
    """Declares ``cursor``, at the first byte, and ``end``, behind the last."""
    at_cursor: str
    """A pointer to what stands at the cursor."""
    here: str
    """The cursor's place, where ``at`` is that pointer."""
    offset: str
    """Of the cursor, in bytes."""


IN_PLACE = Frame(
    packet="packet",
    arrays="p->arrays->",
    bytes_at="{}",
    nowhere="NULL",
    zeros="ina_zeros",
    begin=("const uint8_t *cursor = p->data;", "const uint8_t *const end = p->data + p->length;"),
    at_cursor="cursor",
    here="at",
    offset="(uint32_t)(cursor - p->data)",
)
"""A packet's bytes are read where they came to lie, by pointers."""
