"""Critical sections: where a packet has an element of registers for itself.

Packets may run side by side where a target lets them (several queues of a network card). From the
first to the last access of a group of registers, one packet has its element: so a read, what is
made of it, and the write are one, as P4's @atomic blocks are. A target that runs one packet at a
time needs none of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import BoolConst, Expr
from ina.switch.ir.program import Action, Program
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import (
    Apply,
    Block,
    Exit,
    If,
    RegisterRead,
    RegisterWrite,
    Stmt,
)
from ina.switch.ir.walk import walk
from ina.switch.passes.effects import effects
from ina.switch.passes.fusion import RegisterGroup
from ina.switch.passes.indices import with_plain_indices

_TRUE = BoolConst(True)


@dataclass(frozen=True)
class Section:
    """Statements of which the packet has element ``index`` of the group for itself."""

    group: RegisterGroup
    index: Expr
    body: Block
    source: Source
    leaves: Expr = _TRUE
    """Behind it: whether the packet can still leave (:mod:`.leaving`)."""


def with_sections(program: Program, block: Block, groups: tuple[RegisterGroup, ...]) -> Block:
    """The block, with a :class:`Section` for each group that it uses itself; what actions of its
    tables use is theirs, and each of their bodies a block of its own.

    Where a packet indexes a group in several ways, each use has a section of its own.

    Raises UnsupportedProgramError: the index of a group changes, a section is left from within,
    overlaps another, or has a table in it whose actions use registers.
    """
    block = with_plain_indices(program, block)
    for group in groups:
        if any(_uses(stmt, group) for stmt in block):
            block = _enclosed(program, block, group)
    return block


def _enclosed(program: Program, block: Block, group: RegisterGroup) -> Block:
    """In the innermost block that has all uses of the group."""
    places = [number for number, stmt in enumerate(block) if _uses(stmt, group)]
    first, last = places[0], places[-1]
    if first == last:
        inner = _inside(program, block[first], group)
        if inner is not None:
            return (*block[:first], inner, *block[first + 1 :])
    body = block[first : last + 1]
    index, source = _index(group, body)
    if index is None:
        return tuple(_apart(program, stmt, group) for stmt in block)
    section = Section(group, index, body, source)
    _check(program, section)
    return (*block[:first], section, *block[last + 1 :])  # type: ignore[arg-type]


def _inside(program: Program, stmt: Stmt, group: RegisterGroup) -> Stmt | None:
    """The statement with its section within; None: it stands around all of it."""
    if isinstance(stmt, If):
        users = [any(_uses(it, group) for it in part) for part in (stmt.then, stmt.otherwise)]
        if users == [True, False]:
            return replace(stmt, then=_enclosed(program, stmt.then, group))
        if users == [False, True]:
            return replace(stmt, otherwise=_enclosed(program, stmt.otherwise, group))
    if isinstance(stmt, Apply):
        users = [any(_uses(it, group) for it in part) for part in (stmt.on_hit, stmt.on_miss)]
        if any(_uses(it, group) for _, part in stmt.on_action for it in part):
            return None
        if users == [True, False]:
            return replace(stmt, on_hit=_enclosed(program, stmt.on_hit, group))
        if users == [False, True]:
            return replace(stmt, on_miss=_enclosed(program, stmt.on_miss, group))
    return None


def _accesses(part: object, group: RegisterGroup) -> Iterator[RegisterRead | RegisterWrite]:
    names = {name for run in group.runs for name in run}
    for node in walk(part):
        if isinstance(node, (RegisterRead, RegisterWrite)) and node.register.name in names:
            yield node


def _uses(stmt: object, group: RegisterGroup) -> bool:
    if isinstance(stmt, Section):
        return any(_uses(it, group) for it in stmt.body)
    return any(True for _ in _accesses(stmt, group))


def _index(group: RegisterGroup, body: Block) -> tuple[Expr | None, Source]:
    """None: there are several."""
    found = list(_accesses(body, group))
    alike = all(one.index == found[0].index for one in found)
    return found[0].index if alike else None, found[0].source


def _apart(program: Program, stmt: Stmt, group: RegisterGroup) -> Stmt:
    """The statement with a section for each use of the group."""
    if not _uses(stmt, group):
        return stmt
    if isinstance(stmt, If):
        then, otherwise = (
            _enclosed(program, part, group) if any(_uses(it, group) for it in part) else part
            for part in (stmt.then, stmt.otherwise)
        )
        return replace(stmt, then=then, otherwise=otherwise)
    if isinstance(stmt, (RegisterRead, RegisterWrite)):
        section = Section(group, stmt.index, (stmt,), stmt.source)
        return section  # type: ignore[return-value]
    raise UnsupportedProgramError(
        f"register {group.runs[0][0]!r}, indexed in two ways by one packet", str(stmt.source)
    )


def _check(program: Program, section: Section) -> None:
    name = section.group.runs[0][0]
    for node in _all_in(program, section):
        what = ""
        if isinstance(node, Exit):
            what = "an exit"
        elif isinstance(node, Section):
            what = "other registers"
        elif isinstance(node, Apply) and _uses_registers(program, node.table):
            what = "a table whose actions use registers,"
        if what:
            raise UnsupportedProgramError(
                f"{what} between the uses of register {name!r}", str(node.source)
            )
    if effects(program, section.body).writes.meets(effects(program, section.index).reads):
        raise UnsupportedProgramError(
            f"the index of register {name!r}, which changes between its uses", str(section.source)
        )


def _all_in(program: Program, section: Section) -> Iterator[Any]:
    """Its statements, and those of actions."""
    for node in walk(section.body):
        yield node
        if isinstance(node, Apply):
            yield from walk(tuple(action.body for action in _actions(program, node.table)))


def _actions(program: Program, table: str) -> tuple[Action, ...]:
    found = program.table(table)
    assert found is not None
    return program.possible_actions(found)


def _uses_registers(program: Program, table: str) -> bool:
    bodies = tuple(action.body for action in _actions(program, table))
    return any(isinstance(node, (RegisterRead, RegisterWrite)) for node in walk(bodies))


def resident_tables(*blocks: Block) -> frozenset[str]:
    """Those that are applied within sections: a target may want them where it finds entries while
    it keeps other packets from an element."""
    return frozenset(
        node.table
        for section in walk(blocks)
        if isinstance(section, Section)
        for node in walk(section.body)
        if isinstance(node, Apply)
    )
