"""Whose chunk a packet says it brings: what switches' rows say of it."""

from __future__ import annotations

from ina.protocol.spec import OWNER_BITS, PATH_BITS, index_bits, path_mask, path_of
from ina.protocol.strips import Strips, to_worker


def of_workers(children: int) -> tuple[Strips, ...]:
    """Of all workers of a switch that is the only one."""
    widths = (index_bits(children, is_root=True),)
    mask = as_owners(path_mask(widths))
    return tuple(to_worker(as_owners(path_of((it,), widths)), mask) for it in range(children))


def as_owners(path: int) -> int:
    """A path, or bits of one, as it stands in the lower bits."""
    assert not path & (1 << OWNER_BITS) - 1, f"path {path:#08x} is too long"
    return path >> (PATH_BITS - OWNER_BITS)
