"""Bugs of slots that jobs share, one at a time: what shared_check.py of the design finds in a model
of the protocol, and tests/protocol/shared_faults.py in the reference model, put into what ships:
the P4 program of mode ``shared``, which the aggregator runs, too, the core, the plan of entries,
and the controller.

Of those lists, this is not here. One version of each slot is in :mod:`tests.sim.bugs`. No code is
near these: a switch that answers by itself, a sum read out in two passes, ATP's marks without
rounds. And these show nothing here: workers that name others (they do not), copies by number alone
(only nodes on hosts send those), a clock that never comes round (a run is shorter).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.conformance.mutants import action, nodes
from tests.sim.bug import Bug

Program = dict[str, Any]
Change = Callable[[Program], None]

_OWN, _SHARED = 0, 1
"""Copies that the compiler made of an action: for slots of one job's own, and for shared ones."""


def _meta(name: str) -> Program:
    return {"type": "field", "value": ["scalars", f"ina_metadata_t.{name}"]}


def _ina(name: str) -> Program:
    return {"type": "field", "value": ["ina", name]}


def _number(value: int) -> Program:
    return {"type": "hexstr", "value": f"0x{value:08x}"}


def _copies(program: Program, name: str) -> list[Program]:
    found = [one for one in program["actions"] if one["name"].endswith(name)]
    assert found, f"the program has changed: it has no action {name}"
    return found


def _steps(program: Program, name: str, op: str, copy: int = 0) -> list[Program]:
    return [step for step in _copies(program, name)[copy]["primitives"] if step["op"] == op]


def _assigned(program: Program, name: str, field: str) -> Iterator[Program]:
    """The steps of an action, of all its copies, that give that field a value."""
    found = [
        step
        for one in _copies(program, name)
        for step in one["primitives"]
        if step["op"] == "assign"
        and str(step["parameters"][0]["value"][-1]).rpartition(".")[2] == field
    ]
    assert found, f"the program has changed: {name} gives {field} no value"
    yield from found


def _gives(name: str, field: str, value: Program) -> Change:
    """The action gives that field another value."""

    def change(program: Program) -> None:
        for step in _assigned(program, name, field):
            step["parameters"][1] = value

    return change


def _keeps(name: str, *fields: str) -> Change:
    """The action leaves these fields as they are."""

    def change(program: Program) -> None:
        for field in fields:
            for step in _assigned(program, name, field):
                step["parameters"][1] = dict(step["parameters"][0])

    return change


def answers(words: str, answer: bool, *, before: str = "") -> Change:
    """What the ingress asks in these words always has that answer.

    ``before``: only where what follows, if it is so, is called like this.
    """

    def change(program: Program) -> None:
        found = [
            one
            for one in program["pipelines"][0]["conditionals"]
            if " ".join(one.get("source_info", {}).get("source_fragment", "").split()) == words
            and before in str(one["true_next"])
        ]
        assert found, f"the program has changed: nothing asks {words}"
        for one in found:
            way = "true_next" if answer else "false_next"
            one["true_next"] = one["false_next"] = one[way]

    return change


def _all(*changes: Change) -> Change:
    def change(program: Program) -> None:
        for one in changes:
            one(program)

    return change


# -- the switch --


def _adds_when_taken_over(program: Program) -> None:
    take, join = (action(program, f"accumulate.{name}_values") for name in ("take", "join"))
    take["primitives"] = json.loads(json.dumps(join["primitives"]))


def _is_late(copy: int, program: Program) -> None:
    """An older packet is one of the round in the slot."""
    is_equal, *_, is_newer = _steps(program, "claims.enter_round", "_jump_if_zero", copy)
    asked = json.loads(json.dumps(is_newer["parameters"][0]))
    (age,) = (node for node in nodes(asked) if node.get("op") == "-")
    age["left"], age["right"] = age["right"], age["left"]
    is_equal["parameters"][0] = asked


def _compares_numbers_plainly(program: Program) -> None:
    """Which of two rounds is newer: by their epochs it would be, but not by these."""
    *_, is_newer = _steps(program, "claims.enter_round", "_jump_if_zero", _SHARED)
    (asked,) = (node for node in nodes(is_newer) if node.get("op") == "<")
    asked["op"] = ">="


def _has_no_patience(answer: int, program: Program) -> None:
    """Slots are old for everybody (0), or for nobody (1 << 32)."""
    for step in _steps(program, "claims.claim", "_jump_if_zero"):
        (asked,) = (node for node in nodes(step) if node.get("op") == ">=")
        asked["right"] = {"type": "hexstr", "value": f"0x{answer:09x}"}


def _hears_resends(program: Program) -> None:
    _, write = _steps(program, "claims.look", "register_write")
    write["parameters"][2] = _meta("now")


def _releases_for_others(program: Program) -> None:
    (step,) = _steps(program, "claims.release", "_jump_if_zero")
    (asked,) = (node for node in nodes(step) if node.get("op") == "==")
    asked["left"] = asked["right"]


# -- the aggregator --


def _adds_what_overlaps(program: Program) -> None:
    """Of a set of which some are in the sum already, all are added once more."""
    asked = "(meta.before & meta.worker_bit) == 0"
    for name in ("contribution", "accumulate"):
        for one in program["pipelines"][0]["conditionals"]:
            words = one.get("source_info", {}).get("source_fragment", "")
            if words == asked and name in str(one["true_next"]):
                one["false_next"] = one["true_next"]
    _, is_new, *_ = _steps(program, "claims.enter_round", "_jump_if_zero", _OWN)
    (disjoint,) = (node for node in nodes(is_new) if node.get("op") == "==")
    disjoint["left"] = disjoint["right"]


def _knows_no_supersets(program: Program) -> None:
    for copy in (_OWN, _SHARED):
        _, _, superset, *_ = _steps(program, "claims.enter_round", "_jump_if_zero", copy)
        first = next(node for node in nodes(superset) if node.get("op") == "!=")
        first["left"] = first["right"]


def _never_replays(program: Program) -> None:
    for node in nodes(action(program, "distribute.to_sender")):
        if node.get("type") == "field" and node["value"][1] == "ingress_port":
            node["type"], node["value"] = "hexstr", "0x01ff"  # v1model's port that drops


_SAID = "meta.before != 0 && meta.before != meta.owner_full && meta.said[0:0] == 1"
_P4: dict[str, Change] = {
    "a flush leaves the round open": _keeps("claims.flush_round", "seq", "bitmap"),
    "a flush names its sender alone": _all(
        _gives("claims.leave_with_it", "bitmap", _meta("worker_bit")),
        _gives("claims.leave_without_it", "bitmap", _meta("worker_bit")),
    ),
    "a resend is no different": _gives("claims.resent", "is_resend", _number(0)),
    "taking over adds": _adds_when_taken_over,
    "late ones join": partial(_is_late, _SHARED),
    "owners are not compared": _all(
        _gives("claims.claim", "age", _number(0)), _gives("claims.look", "age", _number(0))
    ),
    "what is put out names the newcomer": _gives(
        "to_parent_of_owner", "contributors", _meta("worker_bit")
    ),
    "what is put out has the newcomer's values": answers(
        "meta.evicts == 1", False, before="touch_values_swap"
    ),
    "what is put out has the newcomer's number": _keeps("speak_for_owner", "seq"),
    "what is put out is the newcomer's job's": _keeps("speak_for_owner", "job", "epoch"),
    "what is put out says what the newcomer says": _keeps(
        "speak_for_owner", "exponent", "value_type"
    ),
    "what goes alone is in the slot, too": _gives("claims.begin_round", "bitmap", _number(0)),
    "aggregator: no tags": partial(_is_late, _OWN),
    "aggregator: it adds what overlaps": _adds_what_overlaps,
    "aggregator: no replay": _never_replays,
}
_P4_SLOW: dict[str, Change] = {
    "newer rounds go alone": _compares_numbers_plainly,
    "slots do not age": partial(_has_no_patience, 1 << 32),
    "slots are old at once": partial(_has_no_patience, 0),
    "resends are heard": _hears_resends,
    "a result releases nothing": _keeps("claims.release", "stamp"),
    "a result releases what is another's": _releases_for_others,
    "closed rounds are put out": answers(_SAID, True),
    "what is put out asks for a result": _keeps("speak_for_owner", "path"),
    "a lane claims beyond the arc": answers("meta.lane >= meta.claimable", False, before="claims"),
    "aggregator: it knows no supersets": _knows_no_supersets,
}

_BITS = "if not self.is_shared or (node.host is not None and node.parent is not None):"
_OTHERS = (
    Bug(
        "shared core: a resend does not say that it is one",
        "native/host/core/worker_core.cpp",
        "packet[wire::kFlagsOffset] |= wire::kFlagResend;\n"
        "    Origin{codec_.path_of(lanes_[resend.lane]), resend.copy}",
        "Origin{codec_.path_of(lanes_[resend.lane]), 0}",
    ),
    Bug(
        "shared plan: a sum counts as all that its switch is for",
        "ina/modes/shared.py",
        "if index >= len(at.node.ranks) and",
        "if index < 0 and",
    ),
    Bug(
        "shared plan: a worker has another bit at each switch",
        "ina/trees/tree.py",
        _BITS,
        "if node.parent is not None or not self.is_shared:",
    ),
    Bug(
        "shared plan: a sum that is put out goes nowhere",
        "ina/modes/shared.py",
        '("parent_port", at.node.parent_port),',
        '("parent_port", at.node.parent_port + 1),',
        slows=True,
    ),
    Bug(
        "shared plan: who is important waits longer",
        "ina/modes/patience.py",
        "return cls(2 * age_us - gain, age_us - gain)",
        "return cls(2 * age_us + gain, age_us + gain)",
        slows=True,
    ),
    Bug(
        "shared controller: arcs are of other jobs' slots",
        "ina/controller/service/term.py",
        "SharedSlots(can.slots - shared, shared)",
        "SharedSlots(0, shared)",
    ),
    Bug(
        "shared controller: an arc is not given back",
        "ina/controller/switches/capacity.py",
        "self.shared.give_back(taken)",
        "pass",
    ),
    Bug(
        "shared controller: arcs are forgotten when it starts again",
        "ina/controller/switches/capacity.py",
        "self.shared.claim(taken)",
        "pass",
    ),
    Bug(
        "shared controller: a switch that forgets ends its jobs",
        "ina/controller/jobs/coordinator.py",
        "if job.shares_slots_of(switch.name):",
        "if not job.members:",
    ),
    Bug(
        "shared controller: a quota is no limit",
        "ina/controller/jobs/site.py",
        "lanes if limit is None else min(lanes, limit)",
        "lanes",
    ),
    Bug(
        "shared controller: a quota is each switch's",
        "ina/controller/jobs/site.py",
        "limit = None if limit is None else limit - arc.reserved",
        "pass",
    ),
    Bug(
        "shared aggregator: it ends with rank 0",
        "ina/host/member/core.py",
        "if aggregator is None:",
        "if aggregator is not None:",
        slows=True,
    ),
)

SHARED_BUGS = (
    *(Bug(f"shared p4: {name}", change=change, mode="shared") for name, change in _P4.items()),
    *(
        Bug(f"shared p4: {name}", change=change, mode="shared", slows=True)
        for name, change in _P4_SLOW.items()
    ),
    *_OTHERS,
)
