"""Metadata that is what the entry of an early table says: read from the entry where it is needed.

An action that copies its parameters into metadata would fill the machine's registers with them for
all that follows, of which a packet that is absorbed needs few. The entry of an early table is at
hand throughout the main path's ingress, and does not change while a packet passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import Const, Expr, FieldRef, ParamRef
from ina.switch.ir.program import Action, Program
from ina.switch.ir.stmt import Apply, Assign, Block
from ina.switch.ir.walk import walk
from ina.switch.passes.effect_places import Kind, Place, field_of
from ina.switch.passes.effects import (
    effects,
    effects_before,
    effects_outside,
    field_ref,
    verifications,
)
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
    if effects(program, ingress.block).leaves:
        return {}
    states = program.states.values()
    parser = (tuple(state.body for state in states), tuple(state.keys for state in states))
    asked = effects(program, parser, ingress.asked, verifications(program))
    found: dict[FieldRef, EntryField] = {}
    for name in _always_applied(ingress.block, early):
        actions = tables[name].actions
        bodies = tuple(action.body for action in actions)
        before = asked.then(effects_before(program, ingress.block, name))
        elsewhere = before.then(effects_outside(program, ingress.block, name))
        for header, field in sorted(effects(program, bodies).writes.fields()):
            place = Place(Kind.FIELD, header, field)
            if place in before.reads or place in elsewhere.writes:
                continue
            is_metadata = program.headers[header].metadata and header != STANDARD
            if is_metadata and field in metadata[header].scalars:
                ref = field_ref(program, header, field)
                said = _said(program, name, actions, ref)
                if said is not None:
                    found[ref] = said
    return found


def _always_applied(block: Block, early: AbstractSet[str]) -> list[str]:
    """Early tables that are applied in every case: who misses one is not on the main path."""
    names: list[str] = []
    for stmt in block:
        if isinstance(stmt, Apply) and stmt.table in early:
            names += [stmt.table, *_always_applied(stmt.on_hit, early)]
    return names


def _said(
    program: Program, table: str, actions: tuple[Action, ...], ref: FieldRef
) -> EntryField | None:
    """None: it takes more than an entry to say what the field is."""
    values: set[Expr] = set()
    words: set[int] = set()
    assigning, lacking = [], []
    for action in actions:
        done = effects(program, action.body)
        if field_of(ref) not in done.writes and field_of(ref) not in done.reads:
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
        value_cut = value.value % (1 << ref.width_bits)
        return EntryField(table, actions=tuple(assigning), value=value_cut)
    params = [it for it in values if isinstance(it, ParamRef) and it.width_bits == ref.width_bits]
    if len(params) < len(values) or len(words) > 1 or ref.width_bits > WORD_BITS:
        return None
    [word] = words
    if any(_param_words(action) > word for action in lacking):
        return None
    return EntryField(table, word)


def _param_words(action: Action) -> int:
    return sum(words_of(param.width_bits) for param in action.params)
