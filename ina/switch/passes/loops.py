"""What a loop's code looks like: what is done once before it, and what each iteration has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ina.switch.ir.expr import Expr, LocalRef
from ina.switch.ir.program import Program
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import Block, If, Loop, RegisterRead, RegisterRef, RegisterWrite
from ina.switch.ir.walk import walk
from ina.switch.passes.effect_places import Effects, Kind, Place
from ina.switch.passes.effects import is_invariant, of_iteration
from ina.switch.passes.fusion import RegisterGroup
from ina.switch.passes.late_arrays import LateArray, holds


@dataclass(frozen=True)
class Condition:
    """A condition that is the same in all iterations."""

    expr: Expr
    source: Source


@dataclass(frozen=True)
class Element:
    """``group[index]``: all that the loop touches of registers, the same in all iterations."""

    group: RegisterGroup
    index: Expr


@dataclass(frozen=True)
class LateUse:
    """A late array whose elements the loop reads where they stand."""

    late: LateArray
    is_changed: bool
    kept_in: RegisterRef | None
    """The registers of the loop's :class:`Element` that hold the changed values, too."""


@dataclass(frozen=True)
class LoopPlan:
    """How a loop is run."""

    conditions: tuple[Condition, ...]
    element: Element | None
    without_registers: Block
    """The body where the element's index is out of range: empty if that does nothing."""
    locals: tuple[LocalRef, ...]
    late: tuple[LateUse, ...]


def plan_loops(
    program: Program,
    parts: Iterable[Any],
    groups: tuple[RegisterGroup, ...],
    late_arrays: Mapping[str, LateArray],
) -> dict[int, LoopPlan]:
    """By number, of all loops in the parts; ``late_arrays``: those of the path that they are on."""
    group_of = {name: group for group in groups for run in group.runs for name in run}
    return {
        loop.number: _plan(program, loop, group_of, late_arrays)
        for loop in walk(tuple(parts))
        if isinstance(loop, Loop)
    }


def _plan(
    program: Program,
    loop: Loop,
    group_of: Mapping[str, RegisterGroup],
    late_arrays: Mapping[str, LateArray],
) -> LoopPlan:
    done = of_iteration(program, loop.body)
    element = _element(program, loop.body, group_of)
    locals_ = {node for node in walk(loop.body) if isinstance(node, LocalRef)}
    writes_only = all(isinstance(stmt, RegisterWrite) for stmt in loop.body)
    return LoopPlan(
        conditions=tuple(_conditions(program, loop.body)),
        element=element,
        without_registers=() if writes_only else loop.body,
        locals=tuple(sorted(locals_, key=lambda local: local.name)),
        late=tuple(
            _late_use(loop, late, done, element, group_of)
            for late in late_arrays.values()
            if any(holds(late.header, late.array, node) for node in walk(loop.body))
        ),
    )


def _conditions(program: Program, body: Block) -> Iterator[Condition]:
    seen: set[Expr] = set()
    for node in walk(body):
        if not isinstance(node, If) or node.condition in seen:
            continue
        if is_invariant(program, node.condition, body):
            seen.add(node.condition)
            yield Condition(node.condition, node.source)


def _element(
    program: Program, body: Block, group_of: Mapping[str, RegisterGroup]
) -> Element | None:
    """None, too, if there are several: they may be the same, so that no pointer is alone."""
    accesses = [node for node in walk(body) if isinstance(node, (RegisterRead, RegisterWrite))]
    if not all(is_invariant(program, access.index, body) for access in accesses):
        return None
    elements = {Element(group_of[access.register.name], access.index) for access in accesses}
    return elements.pop() if len(elements) == 1 else None


def _late_use(
    loop: Loop,
    late: LateArray,
    done: Effects,
    element: Element | None,
    group_of: Mapping[str, RegisterGroup],
) -> LateUse:
    is_changed = Place(Kind.ELEMENT, late.header) in done.writes
    registers = late.kept_in.get(loop.number)
    if registers is None or element is None or group_of[registers.name] != element.group:
        registers = None
    return LateUse(late, is_changed, registers)
