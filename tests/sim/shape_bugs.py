"""Bugs of collectives that are no sums, each to be found by some seed of the fuzzer.

That a result without values is no answer for who wants some only a switch that is not ours can
show: tests/host/test_results.py plays one.
"""

from __future__ import annotations

from tests.sim.bug import Bug
from tests.sim.shared_bugs import answers

_SUBMISSION = "native/host/core/submission.hpp"
_CODEC = "native/host/core/chunk_codec.cpp"
_STRIPS = "ina/protocol/strips.py"

SHAPE_BUGS = (
    Bug(
        "shape core: the owner sends its part, and adds it too",
        _SUBMISSION,
        "return owns(chunk) == (shape == Shape::kGather);",
        "return owns(chunk) || shape == Shape::kScatter;",
    ),
    Bug(
        "shape core: the owner does not add its part",
        _SUBMISSION,
        "return shape == Shape::kScatter && owns(chunk);",
        "return chunk != chunk;",
    ),
    Bug(
        "shape core: the own part of a gather is left out",
        _CODEC,
        "if (to != from) std::memmove(to, from, tensor.chunk_bytes(chunk));",
        "if (false) std::memmove(to, from, tensor.chunk_bytes(chunk));",
    ),
    Bug(
        "shape core: every chunk is said to be the first rank's",
        "native/host/core/chunk_codec.hpp",
        "return tree_.path | tree_.owners[tensor.owner(lane.chunk)];",
        "return tree_.path | tree_.owners[0];",
    ),
    Bug(
        "shape core: small parts are all put where the first one goes",
        _CODEC,
        "const std::size_t before = tensor.rank * tensor.part_bytes();",
        "const std::size_t before = 0;",
    ),
    Bug(
        "shape window: a flow has all of it while the other waits",
        "native/host/recovery/loss_recovery.cpp",
        "const std::uint32_t window = is_shared ? std::max(all / 2, 1u) : all;",
        "const std::uint32_t window = all;",
    ),
    Bug(
        "shape p4: who leaves without values stays so",
        change=answers(
            "!hdr.values.isValid() && (hdr.ina.shape != INA_SHAPE_SUM && meta.missing == 0)", False
        ),
    ),
    Bug(
        "shape p4: who begins without values leaves the slot as it is",
        change=answers("meta.access == ACCESS_TAKE", False, before="clear_values"),
    ),
    Bug(
        "shape plan: the owner gets no values of a scatter, and all others do",
        _STRIPS,
        "return Strips(way, way_mask, on=_GATHER, off=_SCATTER)",
        "return Strips(way, way_mask, on=_SCATTER, off=_GATHER)",
    ),
    Bug(
        "shape plan: a scatter's values do not go to the owner's rack",
        _STRIPS,
        "return Strips(way, way_mask, off=_SCATTER)",
        "return Strips(way, way_mask, on=_SCATTER)",
    ),
    Bug(
        "shape plan: a gather's values do not leave the owner's rack",
        _STRIPS,
        "return Strips(way, way_mask, off=_GATHER)",
        "return Strips(way, way_mask, on=_GATHER)",
    ),
    Bug(
        "stream core: what no block of a gather is sent for is not copied",
        _CODEC,
        "        copy_own(tensor, chunk);\n        if",
        "        if",
    ),
    Bug(
        "stream core: small parts of all ranks name no next block",
        _CODEC,
        "        std::memcpy(to + before, tensor.request.in, tensor.part_bytes());\n",
        "        std::memcpy(to + before, tensor.request.in, tensor.part_bytes());\n"
        "        return;\n",
    ),
    Bug(
        "stream core: a barrier's number of the next block is not counted",
        "native/host/core/worker_core.cpp",
        "!codec_.moves_values(lane)",
        "!lane.moves_values()",
    ),
)
