"""Bugs of trees, one at a time: what hierarchy_check.py of the design finds in a model of the
protocol, put into the P4 program, the core, and the plan of entries.

Of that list, these are in :mod:`tests.sim.bugs`, since one switch is enough for them: one version,
no replay, a worker that takes any epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.mutants import action
from tests.sim.bug import Bug

_REPLAY = 0x40


def _field(header: str, name: str) -> dict[str, Any]:
    return {"type": "field", "value": [header, name]}


def _is_inner(inner: int) -> dict[str, Any]:
    meta = _field("scalars", "ina_metadata_t.is_inner")
    return _expression("==", meta, {"type": "hexstr", "value": f"0x{inner:02x}"})


def _expression(op: str, left: Any, right: Any) -> dict[str, Any]:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def _or_if(expression: dict[str, Any], inner: int) -> None:
    """What it asks for holds at the root (0), or at each other switch (1), anyhow."""
    former = {"type": "expression", "value": dict(expression["value"])}
    expression["value"] = {"op": "or", "left": former, "right": _is_inner(inner)}


def _conditions(program: dict[str, Any], words: str) -> Iterator[dict[str, Any]]:
    """Those of the ingress that are written so."""
    found = [
        one
        for one in program["pipelines"][0]["conditionals"]
        if " ".join(one.get("source_info", {}).get("source_fragment", "").split()) == words
    ]
    assert found, f"the program has changed: nothing asks {words}"
    yield from found


def _drops_repeats(program: dict[str, Any]) -> None:
    """A finished sum goes up once, whoever asks again."""
    _, replay = _conditions(program, "meta.is_inner == 1")
    replay["true_next"] = "tbl_distribute_drop"


def _sends_open_sums_up(program: dict[str, Any]) -> None:
    """Who repeats sends up what is there so far."""
    (repeat,) = _conditions(program, "meta.access == ACCESS_READ && meta.missing == 0")
    _or_if(repeat["expression"]["value"]["right"], 1)


def _has_no_tag(inner: int, program: dict[str, Any]) -> None:
    """An older chunk counts as one of the slot's round."""
    is_equal, is_newer = (
        node["parameters"][0]["value"]["value"]["right"]
        for node in action(program, "slots.enter_round")["primitives"]
        if node["op"] == "_jump_if_zero"
    )
    older = {"type": "expression", "value": {**is_newer["value"], "op": ">="}}
    equal = {"type": "expression", "value": dict(is_equal["value"])}
    is_equal["value"] = {
        "op": "or",
        "left": equal,
        "right": _expression("and", _is_inner(inner), older),
    }


def _has_no_bitmap(inner: int, program: dict[str, Any]) -> None:
    """A child that is in the round already joins it again."""
    for condition in _conditions(program, "(meta.before & meta.worker_bit) == 0"):
        _or_if(condition["expression"], inner)


def _stores_results(program: dict[str, Any]) -> None:
    """What comes down is the switch's own sum from then on."""
    (down,) = _conditions(program, "meta.access == ACCESS_DOWN")
    (table,) = (
        one for one in program["pipelines"][0]["tables"] if one["name"] == down["true_next"]
    )
    (counts,) = (one for one in program["actions"] if one["id"] == table["action_ids"][0])
    counts["primitives"] += action(program, "accumulate.take_values")["primitives"]


def _names_all_results(program: dict[str, Any]) -> None:
    """A result to all seems to be for one: each rack hands it to whoever was the last."""
    make, _ = (one for one in program["actions"] if one["name"].endswith("distribute.make_result"))
    flags = make["primitives"][1]["parameters"]
    assert flags[0] == _field("ina", "flags")
    replay = {"type": "hexstr", "value": f"0x{_REPLAY:02x}"}
    flags[1] = {"type": "expression", "value": _expression("|", flags[1], replay)}


def _names_no_result(program: dict[str, Any]) -> None:
    """A replay goes to all of the rack of who asked."""
    to_sender = action(program, "distribute.to_sender")
    assert to_sender["primitives"][0]["parameters"][0] == _field("ina", "flags")
    del to_sender["primitives"][0]


def _keeps_flags(program: dict[str, Any]) -> None:
    """Of a sum that goes up, nobody hears that it is not finite."""
    for each in program["actions"]:
        if each["name"].endswith("distribute.to_parent"):
            each["primitives"][1]["parameters"][1] = {"type": "hexstr", "value": "0x00"}


TREE_BUGS = (
    Bug("tree p4: a leaf drops repeats", change=_drops_repeats),
    Bug("tree p4: a leaf sends open sums up", change=_sends_open_sums_up),
    Bug("tree p4: no tag at a leaf", change=lambda program: _has_no_tag(1, program)),
    Bug("tree p4: no tag at the root", change=lambda program: _has_no_tag(0, program)),
    Bug("tree p4: no bitmap at a leaf", change=lambda program: _has_no_bitmap(1, program)),
    Bug("tree p4: no bitmap at the root", change=lambda program: _has_no_bitmap(0, program)),
    Bug("tree p4: a leaf stores the result as its sum", change=_stores_results),
    Bug("tree p4: a result to all has a path", change=_names_all_results, slows=True),
    Bug("tree p4: a replay goes to a whole rack", change=_names_no_result, slows=True),
    Bug("tree p4: a leaf keeps the sum's flags", change=_keeps_flags),
    Bug(
        "tree plan: a replay's path leads to nobody",
        "ina/modes/rows.py",
        '(("job", part.number), ("way", way)),',
        '(("job", part.number), ("way", way ^ 1)),',
    ),
    Bug(
        "tree plan: all nodes have the root's children",
        "ina/modes/rows.py",
        '("full_bitmap", sum(at.bits)),',
        '("full_bitmap", at.part.tree.root.full_bitmap),',
    ),
    Bug(
        "tree plan: a node is its parent's first child",
        "ina/modes/mode.py",
        "own_bit=1 << at.own_index",
        "own_bit=1",
        slows=True,
    ),
    Bug(
        "tree plan: a result is taken from below",
        "ina/modes/rows.py",
        "sender(at.part, at.own_index, parent, Kind.RESULT,",
        "sender(at.part, 0, parent, Kind.RESULT,",
    ),
    Bug(
        "tree core: every worker has the first one's path",
        "native/host/core/worker_core.cpp",
        "Origin{codec_.path_of(lanes_[resend.lane]), resend.copy}.store(packet);",
        "Origin{0, resend.copy}.store(packet);",
    ),
    Bug(
        "tree core: the scale leaves room for the root's children alone",
        "native/host/core/chunk_codec.cpp",
        "Block block{tensor.request.type, lane.exponent, config_.summands,",
        "Block block{tensor.request.type, lane.exponent, "
        "__builtin_popcount(tree_.expected_bitmap),",
    ),
)
