"""BMv2 primitives to IR statements; ``_jump`` pairs back to structured branches."""

from __future__ import annotations

from ina.switch.errors import InvalidProgramError
from ina.switch.ir.data import STANDARD, Field, Header
from ina.switch.ir.expr import Binary, Const, FieldRef
from ina.switch.ir.json_access import Json, get_dict, get_objects, get_source, get_str, parse_hex
from ina.switch.ir.load_expr import ExpressionLoader
from ina.switch.ir.scope import Scope
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import (
    Assign,
    Block,
    CopyHeader,
    CopyStack,
    Count,
    Exit,
    Hash,
    HeaderRef,
    If,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
    SetValid,
    ShiftStack,
    Stmt,
    Truncate,
)
from ina.switch.ir.turns import GENERATE_DIGEST, TURNS, digest, turn

_IGNORED = frozenset({"log_msg", "assert", "assume", "no_op"})
_IN_PLACE = {"add_to_field": "+", "subtract_from_field": "-"}
_OF_TWO = {
    "add": "+",
    "subtract": "-",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
"""P4_14's primitives; p4c writes expressions."""
_CUSTOM = {"crc16_custom": "crc16", "crc32_custom": "crc32"}
"""Their polynomials are the usual ones until others are set, which P4Runtime has no words for."""
HASHES = frozenset({"crc16", "crc32", "csum16", "identity", "xor16"})
DROP_PORT = 511


class StatementLoader:
    """Loads the primitives of one action (or of a parser state)."""

    def __init__(self, scope: Scope, params: tuple[int, ...] = ()) -> None:
        self._scope = scope
        self._expr = ExpressionLoader(scope, params)

    def body(self, primitives: list[Json]) -> Block:
        """A whole action body."""
        return self._range(primitives, 0, len(primitives), ())

    def _range(self, ops: list[Json], start: int, end: int, joins: tuple[int, ...]) -> Block:
        """ops[start:end]; a jump to one of ``joins`` at the end of a branch is a fall-through."""
        block: list[Stmt] = []
        position = start
        while position < end:
            op = ops[position]
            name = get_str(op, "op")
            source = get_source(op)
            self._scope.source = source if source.line else self._scope.source
            if name == "_jump_if_zero":
                condition, otherwise_at = op["parameters"]
                target = _jump_target(otherwise_at)
                if not position < target <= end:
                    raise self._scope.refuse("a loop in an action")
                then_end, join = target, target
                last = ops[target - 1] if target - 1 > position else None
                if last is not None and get_str(last, "op") == "_jump":
                    join = _jump_target(last["parameters"][0])
                    if join > end or join <= position:
                        raise self._scope.refuse("this jump in an action (loop or early return)")
                    then_end = target - 1
                then = self._range(ops, position + 1, then_end, (join,))
                otherwise = self._range(ops, target, join, (join,)) if join > target else ()
                block.append(If(self._expr.boolean(condition), then, otherwise, source))
                position = join
            elif name == "_jump":
                target = _jump_target(op["parameters"][0])
                if target != end and target not in joins:
                    previous = get_str(ops[position - 1], "op") if position else ""
                    if previous != "exit":
                        raise self._scope.refuse("this jump in an action (loop or early return)")
                position += 1
            else:
                block.extend(self.primitive(op))
                position += 1
        return tuple(block)

    def primitive(self, op: Json) -> Block:
        """One primitive."""
        name = get_str(op, "op")
        source = get_source(op)
        if source.line:
            self._scope.source = source
        args = get_objects(op, "parameters") if name not in _IGNORED else []
        if name in _IGNORED:
            return ()
        try:
            if name in ("assign_header", "copy_header"):
                return self._copy(self._expr.header(args[0]), self._expr.header(args[1]), source)
            if name in ("mark_to_drop", "drop"):
                return self._mark_to_drop(args, source)
            if name in TURNS:
                return turn(name, [self._expr.integer(arg) for arg in args], self._scope, source)
            if name == GENERATE_DIGEST:
                return digest([self._expr.integer(arg) for arg in args], self._scope, source)
            return (self._statement(name, args, op),)
        except (IndexError, KeyError) as error:
            raise InvalidProgramError(f"BMv2 JSON: {name} with wrong parameters") from error

    def _copy(self, target: HeaderRef, value: HeaderRef, source: Source) -> Block:
        """A header with its validity; metadata, which has none, field by field."""
        if target.name in self._scope.stacks or value.name in self._scope.stacks:
            return (CopyHeader(target, value, source),)
        into, of = self._scope.header(target.name), self._scope.header(value.name)
        if not into.metadata and not of.metadata:
            return (CopyHeader(target, value, source),)
        if into.metadata != of.metadata or _widths(into) != _widths(of):
            raise InvalidProgramError(
                f"BMv2 JSON: {value.name!r} is copied to {target.name!r}, which is not of its type"
            )
        return tuple(
            Assign(_field(into, field), _field(of, field), source) for field in into.type.fields
        )

    def _mark_to_drop(self, args: list[Json], source: Source) -> Block:
        """Of the metadata that it is given: p4c may have made a copy, which is copied back."""
        name = self._expr.header(args[0]).name if args else STANDARD
        metadata = self._scope.header(name)
        fields = metadata.type.by_name
        drop = Assign(_field(metadata, fields["egress_spec"]), Const(DROP_PORT), source)
        group = fields.get("mcast_grp")
        if group is None:
            return (drop,)
        return drop, Assign(_field(metadata, group), Const(0), source)

    def _statement(self, name: str, args: list[Json], op: Json) -> Stmt:
        expr, source = self._expr, get_source(op)
        if name in ("assign", "modify_field"):
            return Assign(expr.target(args[0]), expr.integer(args[1]), source)
        if name in _IN_PLACE or name in _OF_TWO:
            left, right = (expr.integer(arg) for arg in args[-2:])
            operator = _IN_PLACE.get(name) or _OF_TWO[name]
            return Assign(expr.target(args[0]), Binary(operator, left, right), source)
        if name == "add_header":
            return SetValid(expr.header(args[0]), True, source)
        if name == "remove_header":
            return SetValid(expr.header(args[0]), False, source)
        if name == "assign_header_stack":
            target, value = (self._scope.stack(get_str(arg, "value")) for arg in args)
            return CopyStack(target.name, value.name, source)
        if name in ("push", "pop"):
            stack = self._scope.stack(get_str(args[0], "value"))
            count = expr.integer(args[1])
            if not isinstance(count, Const):
                raise self._scope.refuse(f"{name} by a number that is not constant")
            return ShiftStack(stack.name, count.value if name == "push" else -count.value, source)
        if name == "register_read":
            register = self._scope.register(get_str(args[1], "value"))
            return RegisterRead(
                expr.target(args[0]), RegisterRef(register.name), expr.integer(args[2]), source
            )
        if name == "register_write":
            register = self._scope.register(get_str(args[0], "value"))
            return RegisterWrite(
                RegisterRef(register.name), expr.integer(args[1]), expr.integer(args[2]), source
            )
        if name == "count":
            counter = get_str(args[0], "value")
            if counter not in self._scope.counters:
                raise InvalidProgramError(f"BMv2 JSON: unknown counter {counter!r}")
            return Count(counter, expr.integer(args[1]), source)
        if name == "truncate":
            return Truncate(expr.integer(args[0]), source)
        if name == "exit":
            return Exit(source)
        if name == "modify_field_with_hash_based_offset":
            calculation = self._scope.calculation(get_str(args[2], "value"))
            algorithm = _CUSTOM.get(calculation.algorithm, calculation.algorithm)
            if algorithm not in HASHES:
                raise self._scope.refuse(f"the hash algorithm {calculation.algorithm!r}")
            if any(item.payload for item in calculation.inputs):
                raise self._scope.refuse("a hash over the payload")
            return Hash(
                expr.target(args[0]),
                algorithm,
                calculation.inputs,
                expr.integer(args[1]),
                expr.integer(args[3]),
                source,
            )
        raise self._scope.refuse(f"the primitive {name!r}")


def _widths(header: Header) -> dict[str, int]:
    return {field.name: field.width_bits for field in header.type.fields}


def _field(header: Header, field: Field) -> FieldRef:
    return FieldRef(header.name, field.name, field.width_bits, field.signed)


def _jump_target(arg: Json) -> int:
    return parse_hex(get_dict(arg, "a jump target").get("value"))


__all__ = ["HASHES", "StatementLoader"]
