"""Critical sections: where a packet has an element of registers for itself.

Packets may run side by side where a target lets them (several queues of a network card). From the
first to the last access of a group of registers, one packet has its element: so a read, what is
made of it, and the write are one, as P4's @atomic blocks are. A target that runs one packet at a
time needs none of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import BoolConst, Expr
from ina.switch.ir.program import Program
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import (
    Apply,
    Block,
    Count,
    Exit,
    If,
    RegisterRead,
    RegisterWrite,
    Stmt,
)
from ina.switch.ir.walk import walk
from ina.switch.passes.effects import effects
from ina.switch.passes.fusion import RegisterGroup

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

    Raises UnsupportedProgramError: a group is indexed in two ways, its index changes, a section is
    left from within, overlaps another, or has a table, a counter or a hash in it.
    """
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


def _index(group: RegisterGroup, body: Block) -> tuple[Expr, Source]:
    found = list(_accesses(body, group))
    other = next((one for one in found if one.index != found[0].index), None)
    if other is not None:
        raise UnsupportedProgramError(
            f"register {other.register.name!r}, indexed in two ways by one packet",
            str(other.source),
        )
    return found[0].index, found[0].source


def _check(program: Program, section: Section) -> None:
    name = section.group.runs[0][0]
    for node in walk(section.body):
        if isinstance(node, (Apply, Count, Exit, Section)):
            what = {Apply: "a table", Count: "a counter", Exit: "an exit"}.get(
                type(node), "other registers"
            )
            raise UnsupportedProgramError(
                f"{what} between the uses of register {name!r}", str(node.source)
            )
    if effects(program, section.body).writes.meets(effects(program, section.index).reads):
        raise UnsupportedProgramError(
            f"the index of register {name!r}, which changes between its uses", str(section.source)
        )
