"""Bugs of sparse sums: of what the ranks agree on, and of the order of what follows."""

from __future__ import annotations

from tests.sim.bug import Bug

BLOCK_BUGS: tuple[Bug, ...] = (
    Bug(
        "turns: what is submitted later does not wait",
        "ina/host/turns.py",
        "if after is None and not self._queue:",
        "if after is None:",
    ),
    Bug(
        "blocks: a counter has no room for all ranks",
        "ina/host/sparse/agreement.py",
        "    return workers.bit_length()\n",
        "    return max(1, (workers - 1).bit_length())\n",
    ),
    Bug(
        "blocks: the last one, which may be shorter, is left out",
        "native/host/core/blocks.cpp",
        "return std::min(shape.block_bytes, shape.bytes - block * shape.block_bytes);",
        "return block + 1 < shape.blocks() ? shape.block_bytes : 0;",
    ),
)
