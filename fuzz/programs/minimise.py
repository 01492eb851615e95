"""The smallest program and packets that still differ: parts are left out as long as they do.

Many candidates are compiled as one, so that a round costs about one compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from fuzz.programs.check import Finding, check_all
from fuzz.programs.lower import to_json
from fuzz.programs.model import (
    META,
    STANDARD,
    Apply,
    Arg,
    Block,
    Bool,
    Both,
    Case,
    Choice,
    Compare,
    Copy,
    Extract,
    Group,
    If,
    Invert,
    Key,
    Not,
    Num,
    Op,
    Program,
    Ref,
    SetValid,
    Shift,
    State,
    Table,
    To,
    Trial,
    type_of,
    walk,
)

AT_ONCE = 16
MOST_ROUNDS = 400
_FIXED = frozenset({"target", "field", "types", "meta", "headers", "deparse"})


def minimised(finding: Finding, told: Callable[[str], None] = lambda _: None) -> Finding:
    """Of the same path, or of any where that is gone; ``told`` hears how large it is."""
    best = finding
    start = 0
    for _ in range(MOST_ROUNDS):
        candidates = list(_fewer(best.trial))
        order = candidates[start:] + candidates[:start]
        found = None
        at, size = 0, 2  # at first most do
        while at < len(order) and found is None:
            some = order[at : at + size]
            found = next((it for it in check_all(some) if it and _alike(best, it)), None)
            if found is not None:
                best = found
                start = (start + at) % len(candidates)
            at, size = at + size, min(2 * size, AT_ONCE)
        if found is None:
            break
        told(f"{len(list(walk(best.trial.program)))} parts, {len(best.trial.packets)} packets")
    return best


def _alike(best: Finding, other: Finding) -> bool:
    """A program that cannot be run is another finding than one that goes wrong."""
    if best.path == "compiler":
        return other.what[:40] == best.what[:40]
    return other.path == best.path


def _fewer(trial: Trial) -> Iterator[Trial]:
    """Tests with something less, the most first."""
    packets = trial.packets
    size = len(packets) // 2
    while size:
        for at in range(0, len(packets), size):
            yield replace(trial, packets=packets[:at] + packets[at + size :])
        size //= 2
    for program in _smaller(trial.program):
        if _is_whole(program):
            yield replace(trial, program=program)
    for at, (port, data) in enumerate(packets):
        for shorter in (data[: len(data) // 2], data[:-1]):
            if shorter:
                yield replace(trial, packets=(*packets[:at], (port, shorter), *packets[at + 1 :]))
        if port:
            yield replace(trial, packets=(*packets[:at], (0, data), *packets[at + 1 :]))


def _smaller(program: Program) -> Iterator[Program]:
    for name in ("egress", "ingress", "checksums", "groups"):
        if getattr(program, name):
            yield replace(program, **{name: ()})
    for variant in _variants(program):
        yield _without_unused(variant)
    for it in program.headers:
        if it.stack_size > 1:
            less = replace(it, stack_size=it.stack_size - 1)
            yield replace(program, headers=tuple(less if h == it else h for h in program.headers))


def _variants(node: Any) -> Iterator[Any]:
    """The node with one thing less somewhere below."""
    if isinstance(node, tuple):
        yield from _shorter(node)
        for at, item in enumerate(node):
            for other in _variants(item):
                yield (*node[:at], other, *node[at + 1 :])
    elif is_dataclass(node) and not isinstance(node, type):
        yield from _simpler(node)
        for each in fields(node):
            value = getattr(node, each.name)
            if each.name in _FIXED:
                continue
            for other in _shorter(value) if each.name == "inputs" else _variants(value):
                yield replace(node, **{each.name: other})


def _shorter(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Runs of it left out; a branch replaced by what is in it."""
    named = bool(items) and isinstance(items[0], tuple) and isinstance(items[0][0], str)
    if not items or not (is_dataclass(items[0]) or named) or isinstance(items[0], (Key, State)):
        return
    size = len(items)
    while size:
        for at in range(0, len(items), size):
            yield items[:at] + items[at + size :]
        size //= 2
    for at, item in enumerate(items):
        ways: list[Block] = []
        if isinstance(item, If):
            ways = [item.then, item.otherwise]
        elif isinstance(item, Apply):
            ways = [item.hit, item.miss, *(block for _, block in item.cases)]
            if any(ways):
                ways = [(Apply(item.table), *way) for way in ways]
        for way in ways:
            yield (*items[:at], *way, *items[at + 1 :])


def _simpler(node: Any) -> Iterator[Any]:
    """An expression that says less; a state that selects less."""
    if (
        isinstance(node, (Op, Invert, To, Choice, Ref, Arg))
        and getattr(node, "field", "") != "$valid$"
    ):
        width, signed = type_of(node)
        for inner in (getattr(node, name, None) for name in ("left", "then", "operand")):
            if inner is not None and type_of(inner) == (width, signed):
                yield inner
        yield Num(0, width, signed)
        yield Num(1 if width > 1 or not signed else 0, width, signed)
    elif isinstance(node, (Both, Not)):
        yield from (
            getattr(node, name) for name in ("left", "right", "operand") if hasattr(node, name)
        )
        yield from (Bool(True), Bool(False))
    elif isinstance(node, Compare):
        yield from (Bool(True), Bool(False))
    elif isinstance(node, Group) and len(node.copies) > 1:
        for at in range(len(node.copies)):
            yield replace(node, copies=node.copies[:at] + node.copies[at + 1 :])
    elif isinstance(node, Table) and len(node.keys) > 1:
        for at in range(len(node.keys)):
            entries = {it.key[at]: replace(it, key=it.key[at : at + 1]) for it in node.entries}
            yield replace(node, keys=node.keys[at : at + 1], entries=tuple(entries.values()))
    elif isinstance(node, State) and node.keys:
        for case in node.cases:
            yield replace(node, keys=(), cases=(Case((), case.state),))
        if len(node.keys) > 1:
            for at in range(len(node.keys)):
                yield replace(
                    node, keys=(node.keys[at],),
                    cases=tuple(Case(it.values[at : at + 1], it.state) for it in node.cases),
                )  # fmt: skip


def _without_unused(program: Program) -> Program:
    """Declarations that nothing names go."""
    applied = {it.table for it in walk((program.ingress, program.egress)) if isinstance(it, Apply)}
    tables = tuple(it for it in program.tables if it.name in applied)
    called = {name for it in tables for name in it.actions}
    actions = tuple(it for it in program.actions if it.name in called)
    reachable = _reachable(program)
    states = tuple(it for it in program.states if it.name in reachable)
    used = (states, program.ingress, program.egress, tables, actions, program.checksums)
    headers = {name.split("[")[0] for it in walk(used) for name in _headers_of(it)}
    kept = tuple(it for it in program.headers if it.name in headers)
    types = {it.type for it in kept}
    refs = {(it.header.split("[")[0], it.field) for it in walk(used) if isinstance(it, Ref)}
    names = {getattr(it, "register", "") for it in walk(used)}
    counters = {getattr(it, "counter", "") for it in walk(used)}
    return replace(
        program, tables=tables, actions=actions, states=states, headers=kept,
        types=tuple(it for it in program.types if it[0] in types),
        meta=tuple(it for it in program.meta if (META, it.name) in refs),
        registers=tuple(it for it in program.registers if it.name in names),
        counters=tuple(it for it in program.counters if it[0] in counters),
        deparse=tuple(it for it in program.deparse if it in headers),
    )  # fmt: skip


def _reachable(program: Program) -> set[str]:
    states = {it.name: it for it in program.states}
    found: set[str] = set()
    pending = [it.name for it in program.states[:1]]
    while pending:
        name = pending.pop()
        if name in states and name not in found:
            found.add(name)
            pending += [case.state for case in states[name].cases]
    return found


def _headers_of(node: Any) -> tuple[str, ...]:
    if isinstance(node, Copy):
        return node.target, node.value
    if isinstance(node, (Ref, SetValid, Extract)) or hasattr(node, "header"):
        return () if node.header in (META, STANDARD) else (node.header,)
    return (node.stack,) if isinstance(node, Shift) or hasattr(node, "stack") else ()


def _is_whole(program: Program) -> bool:
    """Whether nothing is left that names what is gone."""
    names = {it.name for it in program.states} | {""}
    if not program.states or any(
        case.state not in names for state in program.states for case in state.cases
    ):
        return False
    try:
        to_json(program)
    except (LookupError, ValueError, StopIteration):
        return False
    return True
