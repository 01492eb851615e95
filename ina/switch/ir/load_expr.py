"""BMv2 expressions to IR expressions."""

from __future__ import annotations

from typing import Any

from ina.switch.errors import InvalidProgramError
from ina.switch.ir.expr import (
    ARITHMETIC,
    COMPARISONS,
    Binary,
    BoolConst,
    Cast,
    Const,
    Expr,
    FieldRef,
    Lookahead,
    LValue,
    ParamRef,
    Select,
    StackFieldRef,
    StackInfo,
    StackValid,
    Unary,
    Valid,
    is_bool,
)
from ina.switch.ir.json_access import get_dict, get_str, parse_hex
from ina.switch.ir.scope import Scope
from ina.switch.ir.stmt import HeaderRef

_CASTS = {"two_comp_mod": "wrap", "sat_cast": "saturate", "usat_cast": "usaturate"}


class ExpressionLoader:
    """Loads expressions; ``params`` are the widths of the enclosing action's parameters."""

    def __init__(self, scope: Scope, params: tuple[int, ...] = ()) -> None:
        self._scope = scope
        self._params = params

    def load(self, node: Any) -> Expr:
        """Any right-hand side."""
        node = get_dict(node, "an expression")
        if "op" in node:
            return self._operation(node)
        kind, value = get_str(node, "type"), node.get("value")
        if kind == "expression":
            return self.load(value)
        if kind == "hexstr":
            return Const(parse_hex(value))
        if kind == "bool":
            return BoolConst(bool(value))
        if kind == "field":
            return self._field(value)
        if kind in ("runtime_data", "local"):
            if not isinstance(value, int) or not 0 <= value < len(self._params):
                raise InvalidProgramError(f"BMv2 JSON: no action parameter {value!r}")
            return ParamRef(value, self._params[value])
        if kind == "lookahead":
            offset, width = _pair(value)
            return Lookahead(offset, width)
        if kind == "stack_field":
            stack, name = _pair(value)
            field = self._stack_field(stack, name)
            return StackFieldRef(stack, None, name, field.width_bits, field.signed)
        raise self._scope.refuse(f"the operand kind {kind!r}")

    def boolean(self, node: Any) -> Expr:
        """A condition; an integer condition (``_jump_if_zero``) is compared with 0."""
        expr = self.load(node)
        if isinstance(expr, Unary) and expr.op == "b2d":
            return expr.operand
        return expr if is_bool(expr) else Unary("d2b", expr)

    def integer(self, node: Any) -> Expr:
        """A value; a Boolean becomes 0 or 1."""
        expr = self.load(node)
        return Unary("b2d", expr) if is_bool(expr) else expr

    def target(self, node: Any) -> LValue:
        """Something that can be assigned to."""
        expr = self.load(node)
        if not isinstance(expr, (FieldRef, StackFieldRef)):
            raise self._scope.refuse(f"an assignment to {type(expr).__name__}")
        return expr

    def header(self, node: Any) -> HeaderRef:
        """A header instance or a stack's element."""
        node = get_dict(node, "a header reference")
        if node.get("op") == "dereference_header_stack":
            stack = self._scope.stack(get_str(get_dict(node.get("left"), "a stack"), "value"))
            return HeaderRef(stack.name, self.integer(node.get("right")))
        kind = get_str(node, "type")
        if kind == "expression":
            return self.header(node.get("value"))
        if kind == "header":
            return HeaderRef(self._scope.header(get_str(node, "value")).name)
        raise self._scope.refuse(f"the header operand kind {kind!r}")

    def _field(self, value: Any) -> Expr:
        header, name = _pair(value)
        if isinstance(header, dict):  # hdr.stack[i].isValid()
            ref = self.header(header)
            if name != "$valid$" or ref.index is None:
                raise self._scope.refuse(f"a field reference to {name!r}")
            return Unary("b2d", StackValid(ref.name, ref.index))
        if name == "$valid$":
            return Unary("b2d", Valid(self._scope.header(header).name))
        header = self._scope.home(header, name)
        field = self._scope.field(header, name)
        return FieldRef(header, name, field.width_bits, field.signed)

    def _stack_field(self, stack: str, name: str) -> Any:
        field = self._scope.stack(stack).type.by_name.get(name)
        if field is None:
            raise InvalidProgramError(f"BMv2 JSON: stack {stack!r} has no field {name!r}")
        return field

    def _operation(self, node: dict[str, Any]) -> Expr:
        op = get_str(node, "op")
        left, right = node.get("left"), node.get("right")
        if op == "?":
            condition = self.boolean(node.get("cond"))
            then, otherwise = self.load(left), self.load(right)
            if is_bool(then) != is_bool(otherwise):
                raise InvalidProgramError("BMv2 JSON: branches of '?' differ in type")
            return Select(condition, then, otherwise)
        if op in ("not", "d2b"):
            operand = self.load(right)
            if op == "d2b" and isinstance(operand, Unary) and operand.op == "b2d":
                return operand.operand
            if op == "d2b" and is_bool(operand):
                return operand
            return Unary(op, operand)
        if op == "b2d":
            operand = self.load(right)
            if isinstance(operand, Unary) and operand.op == "d2b":
                inner = operand.operand
                if isinstance(inner, FieldRef) and inner.width_bits == 1:
                    return inner  # a bool field copied: no need to convert twice
            return Unary(op, operand) if is_bool(operand) else operand
        if op == "valid":
            return Valid(self._scope.header(get_str(get_dict(right, "a header"), "value")).name)
        if op in ("and", "or"):
            return Binary(op, self.boolean(left), self.boolean(right))
        if op in COMPARISONS:
            first, second = self.load(left), self.load(right)
            if is_bool(first) and is_bool(second):
                return Binary(op, first, second)
            return Binary(op, self.integer(left), self.integer(right))
        if op in ("~", "-") and left is None:
            return Unary(op, self.integer(right))
        if op in ARITHMETIC:
            return Binary(op, self.integer(left), self.integer(right))
        if op in _CASTS:
            width = self.integer(right)
            if not isinstance(width, Const) or not 1 <= width.value <= 128:
                raise self._scope.refuse(f"{op} to a width that is not a constant in 1..128")
            return Cast(_CASTS[op], self.integer(left), width.value)
        if op in ("last_stack_index", "size_stack"):
            stack = self._scope.stack(get_str(get_dict(right, "a stack"), "value"))
            return StackInfo(stack.name, "last_index" if op == "last_stack_index" else "size")
        if op == "access_field":
            ref = self.header(left)
            if not isinstance(right, int):
                raise InvalidProgramError("BMv2 JSON: access_field without a field number")
            if ref.index is None:
                field = self._scope.header(ref.name).type.fields[right]
                return FieldRef(ref.name, field.name, field.width_bits, field.signed)
            field = self._scope.stack(ref.name).type.fields[right]
            return StackFieldRef(ref.name, ref.index, field.name, field.width_bits, field.signed)
        raise self._scope.refuse(f"the operator {op!r}")


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidProgramError(f"BMv2 JSON: {value!r} is not a pair")
    return value[0], value[1]
