"""The shared controls use only what Tofino has: checked in their text and in the compiled graph."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import compiled, names
from ina.p4.builds import all_builds
from ina.p4.programs import P4_DIR

SHARED = sorted((P4_DIR / "shared").glob("*.p4"))
CONTROLS = [path for path in SHARED if "control " in path.read_text()]
STATEFUL = [*CONTROLS, P4_DIR / "shared" / "claim_state.p4"]  # the last stands inside a control
# Of a macro that declares an action on a register: where its name is, and how many parts are before
# its body.
ACTIONS = {"": (2, 4), "_PAIR": (4, 7), "_OWNER": (1, 4)}

# What the text of a shared file may not hold, and why.
FORBIDDEN = {
    r"[^/*]\*[^/*]": "multiplication",
    r"%": "remainder",
    r"[^/*]/[^/*]": "division",
    r"\b(for|while)\b": "loop",
    r"\bregister\b|\.(read|write)\(": "state outside STATE and STATE_ACTION",
    r"\b(standard_metadata|mark_to_drop|V1Switch)\b": "a name of v1model",
    r"\b(varbit|header_union|recirculate|resubmit|clone)\b": "not on every target",
    r"\bint<(?!32)": "signed arithmetic of odd width",
}


def code(path: Path) -> str:
    """The file without comments and #include lines."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^\s*#\s*include.*$", "", text, flags=re.M)


def state_actions(text: str) -> list[tuple[str, str]]:
    """(name, body) of each STATE_ACTION, STATE_PAIR_ACTION and STATE_OWNER_ACTION in the text."""
    found = []
    for start in re.finditer(r"\bSTATE(|_PAIR|_OWNER)_ACTION\(", text):
        name, before = ACTIONS[start[1]]
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        parts = text[start.end() : end - 1].split(",", before)
        found.append((parts[name].strip(), parts[-1]))
    return found


@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.name)
def test_no_forbidden_construct(path: Path) -> None:
    offences = [why for pattern, why in FORBIDDEN.items() if re.search(pattern, code(path))]
    assert offences == []


def test_each_forbidden_construct_is_found() -> None:
    samples = ["a * b", "a % b", "a / b", "for (i)", "x.read(y, 0)", "mark_to_drop()"]
    samples += ["varbit<8> x", "int<9> x"]
    for pattern, sample in zip(FORBIDDEN, samples, strict=True):
        assert re.search(pattern, sample), sample


def test_the_stateful_controls_are_shared() -> None:
    assert [path.stem for path in CONTROLS] == [*("accumulate", "claims", "contribution", "slots")]
    assert sum(len(state_actions(code(path))) for path in CONTROLS) >= 9
    owners_and_rounds = [name for name, _ in state_actions(code(STATEFUL[-1]))]
    assert owners_and_rounds == [
        *("own_epoch", "claim", "look", "release"),
        *("begin_round", "enter_round", "flush_round"),
    ]


@pytest.mark.parametrize("path", STATEFUL, ids=lambda path: path.name)
def test_bodies_fit_a_stateful_alu(path: Path) -> None:
    for name, body in state_actions(code(path)):
        assert len(re.findall(r"\bif\b", body)) <= 2, name
        for word in set(re.findall(r"\b(value(?:\.\w+)?) = ", body)):
            assert len(re.findall(rf"\b{word} = ", body)) <= 2, name
        outputs = set(re.findall(r"\b(rv(?:_\d)?) = ", body))
        assert outputs in ({"rv"}, {"rv_1", "rv_2"}, set()), name  # the last: STATE_OWNER_ACTION


@pytest.mark.parametrize(("mode", "values"), all_builds())
def test_a_packet_accesses_each_register_once(values: int, mode: str) -> None:
    """Walks every path through the compiled ingress and egress.

    Mode stream is not on chips, and reads its last value's twice: what it adds there depends on it.
    """
    twice = {f"PoolIngress.accumulate.value_{values - 1}"} if mode == names.STREAM else set()
    program = json.loads(compiled(values, mode).bmv2_json.read_text())
    actions = {action["id"]: action for action in program["actions"]}
    used: set[str] = set()
    for pipeline in program["pipelines"]:
        used |= registers_after(pipeline, actions, frozenset(twice))
    assert used == {register["name"] for register in program["register_arrays"]}


def registers_after(
    pipeline: dict[str, Any], actions: dict[int, Any], twice: frozenset[str]
) -> set[str]:
    """Registers that some path through the pipeline accesses.

    Fails where one does so twice, but for those of ``twice``.
    """
    nodes = {node["name"]: node for key in ("tables", "conditionals") for node in pipeline[key]}

    @cache
    def walk(name: str | None) -> frozenset[str]:
        if name is None:
            return frozenset()
        node = nodes[name]
        if "expression" in node:
            return walk(node["true_next"]) | walk(node["false_next"])
        later = {None: node.get("base_default_next"), **node.get("next_tables", {})}
        after = frozenset().union(*(walk(next_name) for next_name in later.values()))
        here = frozenset().union(*(accessed(actions[i]) for i in node["action_ids"]))
        again = here & after - twice
        assert not again, f"{name}: {sorted(again)[:3]} accessed twice on a path"
        return here | after

    return set(walk(pipeline["init_table"]))


def accessed(action: dict[str, Any]) -> frozenset[str]:
    """Registers of one action: each at most once read and then written, at one index."""
    places: dict[str, list[tuple[str, str]]] = {}
    for primitive in action["primitives"]:
        if primitive["op"] in ("register_read", "register_write"):
            names = [p["value"] for p in primitive["parameters"] if p["type"] == "register_array"]
            at = primitive["parameters"][2 if primitive["op"] == "register_read" else 1]
            places.setdefault(names[0], []).append((primitive["op"], json.dumps(at)))
    for register, uses in places.items():
        operations = [operation for operation, _ in uses]
        assert operations in (
            ["register_read"],
            ["register_write"],
            ["register_read", "register_write"],
        ), f"{action['name']}: {register}"
        assert len({at for _, at in uses}) == 1, f"{action['name']}: {register} at two indices"
    return frozenset(places)
