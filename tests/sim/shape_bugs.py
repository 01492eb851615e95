"""Bugs of collectives that are no sums, each to be found by some seed of the fuzzer."""

from __future__ import annotations

from tests.sim.bug import Bug

_SUBMISSION = "native/host/core/submission.hpp"
_CODEC = "native/host/core/chunk_codec.cpp"

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
        "shape core: who wants values takes a result without",
        _CODEC,
        "const bool may_be_bare = !config_.is_stream && !lane.gets();",
        "const bool may_be_bare = !config_.is_stream;",
    ),
    Bug(
        "shape core: the own part of a gather is left out",
        _CODEC,
        "if (to != from) std::memmove(to, from, tensor.chunk_bytes(lane.chunk));",
        "if (false) std::memmove(to, from, tensor.chunk_bytes(lane.chunk));",
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
)
