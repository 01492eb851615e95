"""The main path: the way through the parser that takes most bytes; it gets code of its own.

A packet that goes this way has every header where it always is: the C compiler sees constant
validity flags and constant offsets in all that follows. Other packets take the general code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from ina.switch.ir.expr import Const, Expr, FieldRef, Valid
from ina.switch.ir.program import Action, Key, MatchKind, ParserState, Program, SelectCase
from ina.switch.ir.stmt import Assign, Block, Extract, Stmt
from ina.switch.ir.walk import walk
from ina.switch.passes.effect_places import Kind, Place, Places, field_of
from ina.switch.passes.effects import (
    effects,
    effects_of_keys,
    effects_of_parser,
    verifications,
)
from ina.switch.passes.specialise import Facts, specialise
from ina.switch.passes.usual import constants, equal_field, usual_way

ON_ARRIVAL = frozenset({"ingress_port", "packet_length", "ingress_global_timestamp"})
"""Fields of standard_metadata that are set before a packet is parsed."""

Steps = tuple[tuple[ParserState, SelectCase | None], ...]


@dataclass(frozen=True)
class ParserPath:
    """States in order, each with the transition taken (None: the state has none, it accepts)."""

    steps: Steps
    offsets_bytes: Mapping[str, int]  # of the extracted headers
    size_bytes: int


def find_parser_path(program: Program) -> ParserPath | None:
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
    path = ParserPath(steps, offsets, position)
    return path if offsets and _agree(_selections(program, path)) else None


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


@dataclass(frozen=True)
class Gate:
    """A table that a packet hits, and the only action that an entry there has (index)."""

    table: str
    action: int


@dataclass(frozen=True)
class MainIngress:
    """Ingress for packets of the main path that meet some more conditions."""

    block: Block
    matches: tuple[Match, ...]
    """What the packet's bytes are, on the way through the parser and by the conditions."""
    before: tuple[Expr, ...]
    """Conditions that hold or not before the packet is parsed."""
    after: tuple[Expr, ...]
    """The other conditions."""
    computed: Block
    """What is done when those hold: hashes, and what is made of them, in variables only."""
    of_computed: tuple[Expr, ...]
    """Conditions that are asked of that."""
    facts: Facts
    """What holds when ingress begins."""
    gates: tuple[Gate, ...]
    """Such a packet passes them; ``block`` begins with what their actions do."""
    asked: tuple[Expr | Stmt, ...]
    """All that is done before ``block``: the conditions as the program has them, keys of gates."""


Match = tuple[int, int, int, int]
"""First bit in the packet, width in bits, mask, value."""


def main_ingress(program: Program, path: ParserPath) -> MainIngress:
    """Ingress without what packets of the main path never do, or only few of them."""
    parser = effects_of_parser(program).writes
    valid = {
        name: name in path.offsets_bytes
        for name, header in program.headers.items()
        if not header.metadata and not header.stack and Place(Kind.VALID, name) not in parser
    }
    parsed = _parsed_places(program, path)
    fields: dict[tuple[str, str], int] = {}
    matches = _selections(program, path)
    for state, case in path.steps:
        for key, (value, mask) in selected(program, path, state, case):
            if mask == (1 << key.width_bits) - 1:
                fields[key.header, key.field] = value
    lasting = _lasting(program, program.ingress, Facts(valid, _but(parser, fields)))
    block = specialise(program.ingress, lasting)
    usual = usual_way(program, block, fields, partial(_gate, program))
    before: list[Expr] = []
    after: list[Expr] = []
    for condition in usual.conditions:
        equal = equal_field(condition)
        if equal is not None and (equal[0].header, equal[0].field) in parsed:
            field, value = equal
            whole = (1 << field.width_bits) - 1
            match = (parsed[field.header, field.field], field.width_bits, whole, value)
            if _agree([*matches, match]):
                matches.append(match)
            else:  # no packet goes this way
                after.append(condition)
        elif all(_is_set_on_arrival(program, node) for node in walk(condition)):
            before.append(condition)
        else:
            after.append(condition)
    left = usual.rest[len(usual.given) :]
    known = _but(effects(program, usual.given).writes, usual.known) | constants(usual.given)
    after_given = _lasting(program, left, Facts(lasting.valid, known))
    keys = (key.value for name in usual.gates for key in _keys(program, name))
    return MainIngress(
        (*usual.given, *specialise(left, after_given)),
        tuple(matches),
        tuple(before),
        tuple(after),
        usual.computed,
        usual.of_computed,
        Facts(lasting.valid, usual.known),
        tuple(Gate(name, _entry_actions(program, name)[0].index) for name in usual.gates),
        (*usual.conditions, *usual.computed, *usual.of_computed, *keys),
    )


def _lasting(program: Program, block: Block, facts: Facts) -> Facts:
    """Those of what holds before the block that it leaves as they are.

    Statements that would change one stand often where no packet comes of which all are true. They
    may stand there as long as nothing that is left of the block without them changes one.
    """
    while True:
        changed = effects(program, specialise(block, facts)).writes
        valid = {
            name: is_there
            for name, is_there in facts.valid.items()
            if Place(Kind.VALID, name) not in changed
        }
        left = Facts(valid, _but(changed, facts.fields))
        if left == facts:
            return facts
        facts = left


def _selections(program: Program, path: ParserPath) -> list[Match]:
    """What the packet's bytes are on this way through the parser."""
    parsed = _parsed_places(program, path)
    return [
        (parsed[key.header, key.field], key.width_bits, mask, value)
        for state, case in path.steps
        for key, (value, mask) in selected(program, path, state, case)
    ]


def _agree(matches: Iterable[Match]) -> bool:
    """Whether some packet can have all of these: one mask and value is made of them."""
    known: dict[int, int] = {}
    return all(
        known.setdefault(first + number, wanted >> below & 1) == wanted >> below & 1
        for first, width, mask, wanted in matches
        for number in range(width)
        if mask >> (below := width - 1 - number) & 1
    )


def _but(changed: Places, known: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """What is known, but for fields that change."""
    return {at: value for at, value in known.items() if Place(Kind.FIELD, *at) not in changed}


def _gate(program: Program, name: str, given: tuple[Assign, ...]) -> tuple[Assign, ...] | None:
    """What a table's only action does, if that is no more than constants into fields.

    A look-up of a gate can be made before anything else and, if it misses, again by the general
    code: it counts nothing, and what comes between, as what the gates before it do (``given``),
    changes no key.
    """
    table = program.table(name)
    assert table is not None
    default, actions = program.actions[table.default.action], _entry_actions(program, name)
    before = effects(program, verifications(program), given).then(effects_of_parser(program))
    is_readable = not before.disturb(effects_of_keys(program, name)) and all(
        key.kind is MatchKind.EXACT and isinstance(key.value, FieldRef) for key in table.keys
    )
    if table.has_direct_counter or len(actions) != 1 or not is_readable or default.body:
        return None
    done = [stmt for stmt in actions[0].body if isinstance(stmt, Assign)]
    plain = all(isinstance(it.target, FieldRef) and isinstance(it.value, Const) for it in done)
    return tuple(done) if plain and len(done) == len(actions[0].body) else None


def _keys(program: Program, name: str) -> tuple[Key, ...]:
    table = program.table(name)
    assert table is not None
    return table.keys


def _entry_actions(program: Program, name: str) -> list[Action]:
    """The actions of a table but the default one."""
    table = program.table(name)
    assert table is not None
    return [action for action in table.actions if action.index != table.default.action]


def selected(
    program: Program, path: ParserPath, state: ParserState, case: SelectCase | None
) -> list[tuple[FieldRef, tuple[int, int]]]:
    """The keys of a transition that are fields as they stand in the packet: (value, mask)."""
    if case is None:
        return []
    parsed = _parsed_places(program, path)
    before = path.steps[: 1 + [each.name for each, _ in path.steps].index(state.name)]
    extracted = effects(program, tuple(each.body for each, _ in before)).writes.whole
    return [
        (key, (value, mask))
        for key, width, (value, mask) in zip(
            state.keys, state.key_widths, case.values, strict=False
        )
        if isinstance(key, FieldRef)
        and not key.signed
        and key.width_bits == width
        and key.header in extracted
        and (key.header, key.field) in parsed
    ]


def _parsed_places(program: Program, path: ParserPath) -> dict[tuple[str, str], int]:
    """First bits in the packet of the fields that the main path extracts and leaves as they are."""
    changed = effects_of_parser(program).writes
    return {
        (name, field.name): 8 * offset + field.offset_bits
        for name, offset in path.offsets_bytes.items()
        for field in program.headers[name].type.fields
        if Place(Kind.FIELD, name, field.name) not in changed
    }


def _is_set_on_arrival(program: Program, node: object) -> bool:
    """Whether it is a constant, an operation, or something that no parser state changes."""
    if isinstance(node, FieldRef):
        changed = field_of(node) in effects_of_parser(program).writes
        return node.header == "standard_metadata" and node.field in ON_ARRIVAL and not changed
    return not isinstance(node, Valid)


def _bits(program: Program, steps: Steps) -> int:
    return sum(
        program.headers[stmt.name].type.width_bits
        for state, _ in steps
        for stmt in state.body
        if isinstance(stmt, Extract)
    )
