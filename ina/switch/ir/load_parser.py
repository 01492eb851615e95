"""The parser: states, their operations and transitions."""

from __future__ import annotations

from ina.switch.errors import InvalidProgramError
from ina.switch.ir.expr import Expr, FieldRef, Lookahead, StackFieldRef, Unary
from ina.switch.ir.json_access import (
    Json,
    get_dict,
    get_objects,
    get_source,
    get_str,
    parse_hex,
)
from ina.switch.ir.load_actions import StatementLoader
from ina.switch.ir.load_expr import ExpressionLoader
from ina.switch.ir.program import ParserState, SelectCase
from ina.switch.ir.scope import Scope
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import Advance, Assign, Block, Extract, Stmt, Verify


def load_parser(parser: Json, scope: Scope) -> tuple[str | None, dict[str, ParserState]]:
    """The start state's name and all states by name."""
    states = {}
    for node in get_objects(parser, "parse_states"):
        state = _load_state(node, scope)
        states[state.name] = state
    start = parser.get("init_state")
    for state in states.values():
        for case in state.cases:
            if case.next_state is not None and case.next_state not in states:
                raise InvalidProgramError(f"BMv2 JSON: no parser state {case.next_state!r}")
    if start is not None and start not in states:
        raise InvalidProgramError(f"BMv2 JSON: no parser state {start!r}")
    return start, states


def _load_state(node: Json, scope: Scope) -> ParserState:
    name = get_str(node, "name")
    scope.source = Source(state=name)  # p4c gives few lines of parsers
    body: list[Stmt] = []
    for op in get_objects(node, "parser_ops"):
        scope.source = get_source(op) if get_source(op).line else scope.source
        body.extend(_load_op(op, scope))
    expressions = ExpressionLoader(scope)
    keys = tuple(expressions.integer(key) for key in get_objects(node, "transition_key"))
    widths = tuple(_width(key, scope) for key in keys)
    cases = []
    for transition in get_objects(node, "transitions"):
        scope.source = get_source(transition) if get_source(transition).line else scope.source
        kind = transition.get("type", "default" if transition.get("value") is None else "hexstr")
        if kind == "default" or transition.get("value") == "default":
            cases.append(SelectCase((), transition.get("next_state")))
            continue
        if kind != "hexstr":
            raise scope.refuse("a parser value set" if kind == "parse_vset" else f"{kind!r}")
        value = parse_hex(transition.get("value"))
        mask = transition.get("mask")
        total = sum(_padded(width) for width in widths)
        parts = _split(value, parse_hex(mask) if mask is not None else (1 << total) - 1, widths)
        cases.append(SelectCase(parts, transition.get("next_state")))
    return ParserState(name, tuple(body), keys, widths, tuple(cases), get_source(node))


def _padded(width_bits: int) -> int:
    return (width_bits + 7) // 8 * 8


def _split(value: int, mask: int, widths: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Cut a concatenation of byte-padded fields into (value, mask) of each field."""
    parts = []
    for width in reversed(widths):
        field = (1 << width) - 1
        parts.append((value & mask & field, mask & field))
        value >>= _padded(width)
        mask >>= _padded(width)
    return tuple(reversed(parts))


def _width(key: Expr, scope: Scope) -> int:
    if isinstance(key, (FieldRef, StackFieldRef, Lookahead)):
        return key.width_bits
    if isinstance(key, Unary) and key.op == "b2d":
        return 1
    raise scope.refuse("a transition on this kind of key")


def _load_op(op: Json, scope: Scope) -> Block:
    name, source = get_str(op, "op"), scope.source
    args = get_objects(op, "parameters")
    expressions = ExpressionLoader(scope)
    if name == "extract":
        kind, target = get_str(args[0], "type"), args[0].get("value")
        if kind == "regular":
            return (Extract(scope.on_the_wire(str(target)).name, False, source),)
        if kind == "stack":
            return (Extract(scope.stack(str(target)).name, True, source),)
        raise scope.refuse(f"extraction into a {kind}")
    if name == "set":
        return (Assign(expressions.target(args[0]), expressions.integer(args[1]), source),)
    if name == "verify":
        condition, error = expressions.boolean(args[0]), expressions.integer(args[1])
        return (Verify(condition, error, source),)
    if name == "advance":
        return (Advance(expressions.integer(args[0]), source),)
    if name == "primitive":
        return StatementLoader(scope).primitive(get_dict(args[0], "a primitive"))
    if name == "extract_VL":
        raise scope.refuse("variable-length extraction (varbit)")
    raise scope.refuse(f"the parser operation {name!r}")
