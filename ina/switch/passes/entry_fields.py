"""Metadata that is what the entry of an early table says: read from the entry where it is needed.

An action that copies its parameters into metadata would fill the machine's registers with them for
all that follows, of which a packet that is absorbed needs few. The entry of an early table is at
hand throughout the main path's ingress, and does not change while a packet passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import Const, Expr, FieldRef, ParamRef
from ina.switch.ir.program import Action, Program
from ina.switch.ir.stmt import Apply, Assign, Block, Exit
from ina.switch.ir.walk import pipeline_parts, targets, walk
from ina.switch.passes.main_path import MainIngress
from ina.switch.passes.storage import Storage
from ina.switch.passes.tables import WORD_BITS, TablePlan, param_offsets, words_of


@dataclass(frozen=True)
class EntryField:
    """What a field is, from its table's apply on: the same word of every entry's parameters, or a
    constant if the entry has one of some actions, else 0."""

    table: str
    word: int = 0
    """Of the parameters; those that an action lacks are 0."""
    actions: tuple[int, ...] = ()
    """Given: the field is ``value`` for entries with one of these actions."""
    value: int = 0


EntryFields = Mapping[FieldRef, EntryField]


def entry_fields(
    program: Program,
    ingress: MainIngress,
    early: AbstractSet[str],
    tables: Mapping[str, TablePlan],
    metadata: Mapping[str, Storage],
) -> dict[FieldRef, EntryField]:
    """Fields that nothing but actions of one early table assigns, and that nothing reads before."""
    parts = tuple(pipeline_parts(program, ingress.block))
    if any(isinstance(node, Exit) for node in walk(parts)):
        return {}
    parser = tuple((state.body, state.keys) for state in program.states.values())
    asked = (ingress.before, ingress.after, *(sum_ for sum_ in program.checksums if sum_.verify))
    applied = [node.table for node in walk(ingress.block) if isinstance(node, Apply)]
    found: dict[FieldRef, EntryField] = {}
    for name in _always_applied(ingress.block, early):
        others = [tables[other].actions for other in applied if other != name]
        not_ours = _fields((parser, asked, _before(program, ingress.block, name)))
        not_ours |= _assigned((ingress.block, tuple(others)))
        actions = tables[name].actions
        for ref in sorted(_assigned(actions) - not_ours, key=lambda ref: (ref.header, ref.field)):
            is_metadata = program.headers[ref.header].metadata and ref.header != STANDARD
            said = _said(name, actions, ref)
            if is_metadata and ref.field in metadata[ref.header].scalars and said is not None:
                found[ref] = said
    return found


def _always_applied(block: Block, early: AbstractSet[str]) -> list[str]:
    """Early tables that are applied in every case: who misses one is not on the main path."""
    names: list[str] = []
    for stmt in block:
        if isinstance(stmt, Apply) and stmt.table in early:
            names += [stmt.table, *_always_applied(stmt.on_hit, early)]
    return names


def _before(program: Program, block: Block, table: str) -> tuple[Any, ...]:
    """All that is done or asked in ingress before the table is applied, and its keys."""
    done: list[Any] = []
    for node in walk(block):  # in the order of the program, which has no way back
        if isinstance(node, Apply):
            applied = program.table(node.table)
            assert applied is not None
            done += [key.value for key in applied.keys]
            if node.table == table:
                break
            done += [action.body for action in program.possible_actions(applied)]
        elif isinstance(node, FieldRef):
            done.append(node)
    return tuple(done)


def _fields(node: Any) -> set[FieldRef]:
    return {item for item in walk(node) if isinstance(item, FieldRef)}


def _assigned(node: Any) -> set[FieldRef]:
    return {ref for ref in targets(node) if isinstance(ref, FieldRef)}


def _said(table: str, actions: tuple[Action, ...], ref: FieldRef) -> EntryField | None:
    """None: it takes more than an entry to say what the field is."""
    values: set[Expr] = set()
    words: set[int] = set()
    assigning, lacking = [], []
    for action in actions:
        if ref not in _fields(action.body):
            lacking.append(action)
            continue
        assigned = [it.value for it in action.body if isinstance(it, Assign) and it.target == ref]
        if len(assigned) != 1 or sum(node == ref for node in walk(action.body)) != 1:
            return None
        [value] = assigned
        if isinstance(value, ParamRef):
            words.add(param_offsets(action)[value.index])
        values.add(value)
        assigning.append(action.index)
    [value, *more] = values
    if isinstance(value, Const) and not more:
        return EntryField(table, actions=tuple(assigning), value=value.value)
    params = [it for it in values if isinstance(it, ParamRef) and it.width_bits == ref.width_bits]
    if len(params) < len(values) or len(words) > 1 or ref.width_bits > WORD_BITS:
        return None
    [word] = words
    if any(_param_words(action) > word for action in lacking):
        return None
    return EntryField(table, word)


def _param_words(action: Action) -> int:
    return sum(words_of(param.width_bits) for param in action.params)
