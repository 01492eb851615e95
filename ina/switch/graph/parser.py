"""The parser as a graph: states in columns, transitions with their conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ina.switch.ir.expr import Expr, FieldRef, StackFieldRef
from ina.switch.ir.program import ParserState, Program, SelectCase


@dataclass(frozen=True)
class Transition:
    """From a state to another, and for which packets."""

    origin: str
    target: str
    label: str


def transitions(program: Program) -> list[Transition]:
    """Transitions between states; those that end the parser are left out."""
    return [
        Transition(state.name, case.next_state, _label(state, case))
        for state in program.states.values()
        for case in state.cases
        if case.next_state is not None
    ]


def parser_columns(program: Program) -> list[list[str]]:
    """Names of states by their distance from the first one; those that none leads to come last."""
    if program.start_state is None:
        return [list(program.states)] if program.states else []
    columns, seen = [[program.start_state]], {program.start_state}
    while columns[-1]:
        following = list(dict.fromkeys(_targets(program, columns[-1], seen)))
        seen.update(following)
        columns.append(following)
    rest = [name for name in program.states if name not in seen]
    return [column for column in (*columns, rest) if column]


def _targets(program: Program, column: list[str], seen: set[str]) -> Iterator[str]:
    for name in column:
        for case in program.states[name].cases:
            if case.next_state is not None and case.next_state not in seen:
                yield case.next_state


def _label(state: ParserState, case: SelectCase) -> str:
    """`ipv4.protocol == 17`, with the mask where not all bits count; "otherwise"."""
    tests = []
    for key, width_bits, (value, mask) in zip(
        state.keys, state.key_widths, case.values, strict=False
    ):
        name = _key_name(key)
        if mask == (1 << width_bits) - 1 or mask == -1:
            tests.append(f"{name} == {_number(value)}")
        elif mask:
            tests.append(f"{name} & {mask:#x} == {_number(value)}")
    return " and ".join(tests) or ("otherwise" if state.keys else "always")


def _key_name(key: Expr) -> str:
    match key:
        case FieldRef():
            return f"{key.header}.{key.field}"
        case StackFieldRef():
            return f"{key.stack}[].{key.field}"
        case _:
            return "key"


def _number(value: int) -> str:
    return str(value) if value < 256 else f"{value:#x}"
