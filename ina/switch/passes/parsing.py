"""The parser: which states there are to print, and what each statement needs of the packet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ina.switch.ir.expr import Expr, Lookahead, StackFieldRef
from ina.switch.ir.program import ParserState, Program, SelectCase
from ina.switch.ir.stmt import Stmt
from ina.switch.ir.walk import walk
from ina.switch.passes.main_path import ParserPath, selected

MAX_STEPS = 4096
"""States that a packet may pass; more is the parser error ParserTimeout."""


@dataclass(frozen=True)
class Needs:
    """What must be there before something is read; else the parser stops with an error."""

    bits_ahead: int
    """Of the packet, or it is PacketTooShort."""
    filled_stacks: tuple[str, ...]
    """Stacks with an element, or it is StackOutOfBounds. Each as often as it is read."""


@dataclass(frozen=True)
class StatePlan:
    """A state with what its statements and its keys need."""

    state: ParserState
    body: tuple[tuple[Stmt, Needs], ...]
    keys: Needs
    in_cycle: bool
    """Whether a packet can come here again: its steps are counted."""


@dataclass(frozen=True)
class MainStep:
    """A state on the main path, and the way out of it that stays on the path."""

    plan: StatePlan
    taken: SelectCase | None
    """None: the state has no transition, it accepts."""
    settled: frozenset[Expr]
    """Keys of ``taken`` that have been compared before the parser begins."""


def plan_states(program: Program) -> tuple[StatePlan, ...]:
    """The states that a packet can reach, in the order of their code."""
    order: list[str] = []
    pending = [program.start_state]
    while pending:
        name = pending.pop()
        if name is None or name in order:
            continue
        order.append(name)
        pending.extend(case.next_state for case in reversed(program.states[name].cases))
    return tuple(_plan(program, program.states[name]) for name in order)


def plan_steps(program: Program, path: ParserPath) -> tuple[MainStep, ...]:
    """The main path's steps in order."""
    return tuple(
        MainStep(
            _plan(program, state),
            taken,
            frozenset(key for key, _ in selected(program, path, state, taken)),
        )
        for state, taken in path.steps
    )


def _plan(program: Program, state: ParserState) -> StatePlan:
    body = tuple((stmt, _needs((stmt,))) for stmt in state.body)
    return StatePlan(state, body, _needs(state.keys), _in_cycle(program, state.name))


def _needs(nodes: Iterable[Stmt | Expr]) -> Needs:
    found = [node for item in nodes for node in walk(item)]
    ends = (n.offset_bits + n.width_bits for n in found if isinstance(n, Lookahead))
    last = (n.stack for n in found if isinstance(n, StackFieldRef) and n.index is None)
    return Needs(max(ends, default=0), tuple(last))


def _in_cycle(program: Program, name: str) -> bool:
    seen: set[str | None] = set()
    pending = [case.next_state for case in program.states[name].cases]
    while pending:
        at = pending.pop()
        if at == name:
            return True
        if at is None or at in seen:
            continue
        seen.add(at)
        pending.extend(case.next_state for case in program.states[at].cases)
    return False
