"""What code reads and changes: the one analysis that every pass asks.

A pass that moves code, or takes something as known, is right as long as nothing in between changes
what it relies on. What a statement changes is said once for each kind, by
:data:`ina.switch.passes.effect_rules.RULES`; a kind without a rule is refused, so that no pass can
overlook it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.program import Checksum, Program
from ina.switch.ir.stmt import Apply, Block, Extract, If, Loop, Stmt
from ina.switch.ir.turns import NOTES
from ina.switch.passes.effect_places import OWN, Effects, Kind, Places
from ina.switch.passes.effect_rules import Told


def effects(program: Program, *parts: Any) -> Effects:
    """Of statements, expressions, checksums or tuples of them, one after another.

    What they say of tables holds for every entry that there may be. Raises UnlistedKindError.
    """
    told = Told(program)
    told.all(parts)
    return told.done()


def effects_but_arrays(program: Program, *parts: Any) -> Effects:
    """The same, but what is over a whole array is told as ARRAY."""
    told = Told(program, arrays_apart=True)
    told.all(parts)
    return told.done()


def of_iteration(program: Program, *parts: Any) -> Effects:
    """The same, but what an iteration has of its own is told as LOCAL, ELEMENT and MEMBER, and what
    is over a whole array as ARRAY."""
    told = Told(program, iterations=0, arrays_apart=True)
    told.all(parts)
    return told.done()


def is_invariant(program: Program, expr: Expr, body: Block) -> bool:
    """Whether it is the same in all iterations of this loop."""
    asked = of_iteration(program, expr)
    own = any(place.kind in OWN for place in asked.reads.each)
    return not own and not of_iteration(program, body).disturb(asked)


def effects_before(program: Program, block: Block, table: str) -> Effects:
    """Of all that a packet may have passed when it is looked up in the table, its keys included."""
    told = Told(program)
    told.until(block, table)
    return told.done()


def effects_outside(program: Program, block: Block, table: str) -> Effects:
    """Of all that the block does but for what the table's actions do."""
    told = Told(program, without=table)
    told.all(block)
    return told.done()


def effects_of_keys(program: Program, table: str) -> Effects:
    """Of a lookup."""
    told = Told(program)
    told.keys(table)
    return told.done()


def effects_of_parser(program: Program) -> Effects:
    """Of all states, but for what they extract."""
    bodies = tuple(state.body for state in program.states.values())
    kept = tuple(stmt for body in bodies for stmt in body if not isinstance(stmt, Extract))
    return effects(program, kept)


def effects_of_copies(program: Program) -> Effects:
    """Of what is done once for each copy of a packet: egress, and the update of checksums."""
    return effects(program, program.egress, updates(program))


def read_by_switch(program: Program) -> Places:
    """What is read when a pipeline is over, though no statement says so: where a packet goes, and
    what its copies keep."""
    told = Told(program)
    for header in (STANDARD, NOTES):
        told.read(Kind.FIELD, header)
    told.all(tuple(program.turns.field_lists.values()))
    return told.done().reads


def verifications(program: Program) -> tuple[Checksum, ...]:
    """What is done with checksums before ingress."""
    return tuple(replace(each, update=False) for each in program.checksums if each.verify)


def updates(program: Program) -> tuple[Checksum, ...]:
    """What is done with checksums after egress."""
    return tuple(replace(each, verify=False) for each in program.checksums if each.update)


def is_plain(node: object) -> bool:
    """Whether it is a statement that has no others in it."""
    return isinstance(node, get_args(Stmt)) and not isinstance(node, (If, Apply, Loop))


def field_ref(program: Program, header: str, field: str) -> FieldRef:
    """The reference to a field."""
    its = program.headers[header].type.by_name[field]
    return FieldRef(header, field, its.width_bits, its.signed)
