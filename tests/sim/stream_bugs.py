"""Bugs of streams of blocks, one at a time: of the program, of the core, and of who writes rows.

Those of the program are the faults that the search of the protocol finds, too
(tests/protocol/stream_faults.py).
"""

from __future__ import annotations

from typing import Any

from ina.p4.names import STREAM
from tests.conformance.mutants import action, nodes
from tests.sim.bug import Bug

_FINDER = "native/host/core/block_finder.hpp"
_CODEC = "native/host/core/chunk_codec.cpp"
_CORE = "native/host/core/worker_core.cpp"
_SCHEDULE = "native/host/core/schedule.hpp"


def _least(program: dict[str, Any]) -> dict[str, Any]:
    """Reads the slot's `next`, skips the third if it is no less, takes it, subtracts it."""
    found = action(program, "accumulate.touch_values_least")
    assert len(found["primitives"]) == 4
    return found


def _keeps_the_least(program: dict[str, Any]) -> None:
    take = action(program, "accumulate.take_values")
    take["primitives"] = [*_least(program)["primitives"][:3], *take["primitives"]]


def _believes_the_last(program: dict[str, Any]) -> None:
    found = _least(program)
    found["primitives"] = [found["primitives"][0], found["primitives"][3]]


def _believes_the_first(program: dict[str, Any]) -> None:
    found = _least(program)
    del found["primitives"][1]


def _adds_the_numbers(program: dict[str, Any]) -> None:
    _least(program)["primitives"] = []


def _compares_signed(program: dict[str, Any]) -> None:
    for node in nodes(_least(program)):
        if node.get("op") == "<":
            for side in ("left", "right"):
                sign = {"type": "hexstr", "value": "0x80000000"}
                flipped = {"op": "^", "left": node[side], "right": sign}
                node[side] = {"type": "expression", "value": flipped}
            return


def _does_not_clear(program: dict[str, Any]) -> None:
    """A packet that says `next` alone has the slot's first value, not zero."""
    value_0 = action(program, "accumulate.read_values")["primitives"][0]["parameters"][1:]
    for step in action(program, "expand.expand")["primitives"]:
        if step["op"] == "assign" and step["parameters"][0]["value"] == ["values", "v0"]:
            step["op"], step["parameters"] = "register_read", [step["parameters"][0], *value_0]


def _does_not_expand(program: dict[str, Any]) -> None:
    """Such a packet leaves as long as it came, though it completes a sum or asks for it."""
    found = action(program, "expand.expand")
    _without(found, "value_count")
    _without(found, "_bytes")


def _without(found: dict[str, Any], words: str) -> None:
    def says(step: dict[str, Any]) -> bool:
        return words in step["source_info"]["source_fragment"]

    assert any(map(says, found["primitives"])), words
    found["primitives"] = [step for step in found["primitives"] if not says(step)]


STREAM_BUGS: tuple[Bug, ...] = (
    Bug("stream p4: the least outlives its round", change=_keeps_the_least, mode=STREAM),
    Bug("stream p4: the last one's next counts", change=_believes_the_last, mode=STREAM),
    Bug("stream p4: the first one's next counts", change=_believes_the_first, mode=STREAM),
    Bug("stream p4: next is added up", change=_adds_the_numbers, mode=STREAM),
    Bug("stream p4: next has a sign", change=_compares_signed, mode=STREAM),
    Bug("stream p4: a packet without values does not clear", change=_does_not_clear, mode=STREAM),
    Bug("stream p4: one that completes is not expanded", change=_does_not_expand, mode=STREAM),
    Bug(
        "stream controller: a switch below another adds up next",
        "ina/modes/stream.py",
        "rows.admission(at, names.ADMIT_INNER_STREAM_JOB, **above)",
        "rows.admission(at, names.ADMIT_INNER_JOB, **above)",
    ),
    Bug(
        "stream core: a lane goes where it has a block itself",
        _SCHEDULE,
        "return is_stream_ ? named : after(lane.tensor->place, lane.chunk);",
        "return is_stream_ ? lane.next_own : after(lane.tensor->place, lane.chunk);",
    ),
    Bug(
        "stream core: what it skips is not done",
        _SCHEDULE,
        "return (next - lane.chunk) / lane.tensor->place.step(window_);",
        "return 1;",
    ),
    Bug(
        "stream core: what it skips stays as it was",
        _CORE,
        "if (config_.is_stream) codec_.clear_between(lane, next);",
        "",
    ),
    Bug(
        "stream core: the exponent is the first block's",
        _FINDER,
        "schedule_.each_from(tensor.place, chunk, [&](std::uint64_t at) {",
        "schedule_.each_from(tensor.place, chunk, [&](std::uint64_t at) {\n"
        "            if (at != chunk) return;",
    ),
    Bug(
        "stream core: the end of a block is not looked at",
        _FINDER,
        "        for (; i < count; ++i) {\n",
        "        for (; i < 0 * count; ++i) {\n",
    ),
    Bug(
        "stream core: the tensor's last block is not looked for",
        _FINDER,
        "chunk = schedule_.after(tensor.place, chunk);",
        "chunk = schedule_.after(tensor.place, chunk + 1) == Schedule::kNone\n"
        "                        ? Schedule::kNone\n"
        "                        : schedule_.after(tensor.place, chunk);",
    ),
    Bug(
        "stream core: a block of NaN is taken for zero",
        _FINDER,
        "return found.exponent == wire::kExponentAllZero && !found.non_finite;",
        "return found.exponent == wire::kExponentAllZero;",
    ),
    Bug(
        "stream core: a lane's first block is taken for zero",
        _CODEC,
        "lane.is_zero = is_first ? finder_.is_zero(tensor, lane.chunk) : !is_own;",
        "lane.is_zero = !is_own;",
    ),
    Bug(
        "stream core: a NaN behind the first block is not told",
        _CODEC,
        "lane.non_finite = !lane.is_zero && is_float(tensor.request.type) &&",
        "lane.non_finite = is_first && !lane.is_zero && is_float(tensor.request.type) &&",
    ),
    Bug(
        "stream core: values lie where next does",
        "native/host/core/worker_config.cpp",
        "return config.values_per_packet - (config.is_stream ? 1 : 0);",
        "return config.values_per_packet;",
    ),
)
