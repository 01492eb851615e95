"""The header's ``path``: whose packet it is, or whose caused it."""

from __future__ import annotations

from ina.protocol.spec import MAX_LEVELS, PATH_BITS, PATH_BITS_PER_LEVEL


def path_indices(path: int) -> list[int]:
    """The child at each level, the root's first; of those behind the path's end, 0."""
    return [
        path >> PATH_BITS - PATH_BITS_PER_LEVEL * (level + 1) & (1 << PATH_BITS_PER_LEVEL) - 1
        for level in range(MAX_LEVELS)
    ]
