"""The header's ``path``: whose packet it is, or whose caused it, and whose chunk it brings.

How many bits an index takes is its node's to say, and no packet says it: so a path is told as a
number, and paths of a tree are told apart by it.
"""

from __future__ import annotations

from ina.protocol.codec import Header
from ina.protocol.spec import MAX_WORKERS, OWNER_BITS, PATH_BITS, Kind, Shape, index_bits

_OWNER_SHIFT = PATH_BITS - OWNER_BITS
_OWNER_MASK = (1 << OWNER_BITS) - 1
ROOT_BITS = frozenset(range(1, index_bits(MAX_WORKERS, is_root=True) + 1))
"""How many bits of a path may say which of the root's children is meant."""


def whose(header: Header) -> int:
    """The path of whose packet it is, or whose caused it: 24 bits, without an owner's."""
    return header.path if header.shape == Shape.SUM else header.path & ~_OWNER_MASK


def owner(header: Header) -> int | None:
    """The path of whose chunk it is, 12 bits; None: in a sum no chunk is anybody's."""
    return None if header.shape == Shape.SUM else header.path & _OWNER_MASK


def root_index(header: Header) -> int:
    """Which of its root's children a result's path leads to; where slots are no other jobs', for
    there its contributors are the root's children."""
    return whose(header) >> PATH_BITS - root_bits(header)


def root_bits(header: Header) -> int:
    """How many bits of a result's path that takes."""
    return index_bits(header.contributors.bit_length(), is_root=True)


def leads_on(header: Header) -> bool:
    """Whether a path leads to more than a child of the switch that the packet is from or to, which
    is a worker then; as far as the packet tells."""
    path = whose(header)
    if header.kind is Kind.RESULT:
        return bool(path << root_bits(header) & ((1 << PATH_BITS) - 1))
    return path not in {header.worker << PATH_BITS - bits for bits in ROOT_BITS}


def path_text(path: int) -> str:
    """``0x200``, and the lower bits too where it has some: ``0x200800``."""
    return f"0x{path:06x}" if path & _OWNER_MASK else f"0x{path >> _OWNER_SHIFT:03x}"


def owner_text(owned_by: int) -> str:
    """As :func:`path_text` tells the same rank's path."""
    return f"0x{owned_by:03x}"


def shape_text(shape: int) -> str:
    """``scatter``; of a number that is none: that."""
    names = {member.value: member.name.lower() for member in Shape}
    return names.get(shape, f"shape {shape}")
