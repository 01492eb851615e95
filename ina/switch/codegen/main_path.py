"""The main path: the way through the parser that takes most bytes; it gets code of its own.

A packet that goes this way has every header where it always is: the C compiler sees constant
validity flags and constant offsets in all that follows. Other packets take the general code.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Case, ParserState, Program
from ina.switch.ir.specialise import Facts, specialise
from ina.switch.ir.stmt import Assign, Block, CopyHeader, Extract, SetValid
from ina.switch.ir.walk import pipeline_parts, targets, walk


@dataclass(frozen=True)
class MainPath:
    """States in order, each with the transition taken (None: the state has none, it accepts)."""

    steps: tuple[tuple[ParserState, Case | None], ...]
    offsets_bytes: dict[str, int]  # of the extracted headers
    size_bytes: int


def find_main_path(program: Program) -> MainPath | None:
    """None if the parser has a loop, or no path of plain extractions."""
    if program.start_state is None:
        return None
    steps = _longest(program, program.start_state, (), {})
    if steps is None:
        return None
    offsets: dict[str, int] = {}
    position = 0
    for state, _ in steps:
        for stmt in state.body:
            if isinstance(stmt, Extract):
                if stmt.name in offsets:
                    return None
                offsets[stmt.name] = position
                position += program.headers[stmt.name].type.width_bits // 8
    return MainPath(steps, offsets, position) if offsets else None


Steps = tuple[tuple[ParserState, Case | None], ...]


def _longest(
    program: Program, name: str, above: tuple[str, ...], known: dict[str, Steps | None]
) -> Steps | None:
    """The steps from a state on that extract the most; None if none qualify."""
    if name in above:
        return None
    if name not in known:
        state = program.states[name]
        found: list[Steps] = []
        if _is_plain(program, state):
            if not state.cases:
                found.append(((state, None),))
            for case in state.cases:
                rest: Steps | None = ()
                if case.next_state is not None:
                    rest = _longest(program, case.next_state, (*above, name), known)
                if rest is not None:
                    found.append(((state, case), *rest))
        known[name] = max(found, key=lambda steps: _bits(program, steps), default=None)
    return known[name]


def _is_plain(program: Program, state: ParserState) -> bool:
    """Whether the state only extracts headers (not into stacks) and assigns."""
    return all(
        isinstance(stmt, Assign)
        or (
            isinstance(stmt, Extract)
            and not stmt.stack
            and not program.headers[stmt.name].stack
            and program.headers[stmt.name].type.width_bits % 8 == 0
        )
        for stmt in state.body
    )


def main_ingress(program: Program, path: MainPath) -> Block:
    """Ingress without what packets of the main path never do."""
    code = (
        *(state.body for state in program.states.values()),
        *pipeline_parts(program, program.ingress),
    )
    changed = {(t.header, t.field) for t in targets(code) if isinstance(t, FieldRef)}
    remade: set[str] = set()  # headers whose validity ingress can change
    for node in walk(code):
        if isinstance(node, SetValid):
            remade.add(node.header.name)
        elif isinstance(node, CopyHeader):
            remade.add(node.target.name)
    valid = {
        name: name in path.offsets_bytes
        for name, header in program.headers.items()
        if not header.metadata and not header.stack and name not in remade
    }
    fields: dict[tuple[str, str], int] = {}
    for state, case in path.steps:
        if case is None:
            continue
        for key, width, (value, mask) in zip(
            state.keys, state.key_widths, case.values, strict=False
        ):
            whole = isinstance(key, FieldRef) and mask == (1 << width) - 1 == (
                (1 << key.width_bits) - 1
            )
            if whole and isinstance(key, FieldRef) and key.header in path.offsets_bytes:
                fields[key.header, key.field] = value
    known = {place: value for place, value in fields.items() if place not in changed}
    return specialise(program.ingress, Facts(valid, known))


def _bits(program: Program, steps: Steps) -> int:
    return sum(
        program.headers[stmt.name].type.width_bits
        for state, _ in steps
        for stmt in state.body
        if isinstance(stmt, Extract)
    )
