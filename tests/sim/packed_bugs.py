"""Bugs of words that hold several values, one at a time."""

from __future__ import annotations

from tests.sim.bug import Bug

PACKED_BUGS = (
    Bug(
        "packed core: columns have room without a sign",
        "native/host/core/packed.cpp",
        "((std::int64_t{1} << (bits - 1)) - 1) / summands",
        "((std::int64_t{1} << (bits < 32 ? bits : 31)) - 1) / summands",
    ),
    Bug(
        "packed core: chance depends on sequence numbers",
        "native/host/core/chunk_codec.cpp",
        "block.key = rounding_key(tensor.request.number(),",
        "block.key = rounding_key(lane.seq,",
    ),
    Bug(
        "packed core: chance is the same on all ranks",
        "native/host/core/packed.cpp",
        "mix(mix(tensor) ^ mix(~first_elem) ^ rank)",
        "mix(mix(tensor) ^ mix(~first_elem) ^ (rank & 0))",
    ),
    Bug(
        "packed core: no borrow is given back",
        "native/host/core/packed.cpp",
        "        below += 1u << (column.shift + bits - 1);\n",
        "",
    ),
)
