"""Expressions to C.

Two ways to compute an integer: *modulo 2^k*, where unsigned arithmetic is enough (below a mask
or an assignment), and *exactly*, where the value itself matters (comparisons, right shifts,
saturation): there the value's range picks a machine type that holds it.
"""

from __future__ import annotations

from ina.switch.emit.c_types import CType, container_bits, literal, modular_type, type_for
from ina.switch.emit.layout import Layout
from ina.switch.emit.where import Where
from ina.switch.ir.expr import (
    COMPARISONS,
    ArrayFieldRef,
    Binary,
    BoolConst,
    Cast,
    Const,
    Expr,
    FieldRef,
    LocalRef,
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
from ina.switch.ir.ranges import range_of


class Expressions:
    """Expressions of one place in the code."""

    def __init__(self, layout: Layout, where: Where) -> None:
        self._layout = layout
        self._where = where

    # -- leaves --

    def lvalue(self, target: LValue) -> str:
        """Where an assignment goes (stack elements: the caller has checked the index)."""
        if isinstance(target, FieldRef):
            return self._layout.field(target, late=self._where.late)
        if isinstance(target, LocalRef):
            return target.name
        if isinstance(target, ArrayFieldRef):
            late = self._where.loop.late.get(target.header) if self._where.loop else None
            return late or self._layout.array_field(target, "k")
        stack = self._layout.stack(target.stack)
        index = self.stack_index(target)
        return f"{stack}[{index}].{self._layout.stack_member(target)}"

    def stack_index(self, ref: StackFieldRef) -> str:
        """The element's number, forced into the stack."""
        size = len(self._layout.program.stacks[ref.stack].members)
        if ref.index is None:
            stack = self._layout.stack(ref.stack)
            return f"ina_min_u64({stack}_next ? {stack}_next - 1 : 0, {size - 1})"
        return f"ina_min_u64({self.exact(ref.index, 64)}, {size - 1})"

    def in_stack(self, stack: str, index: Expr) -> str:
        """Whether a run-time index is inside the stack."""
        size = len(self._layout.program.stacks[stack].members)
        return f"(uint64_t){self.exact(index, 64)} < {size}"

    def _leaf(self, expr: Expr) -> tuple[str, int] | None:
        """Code and width of a stored unsigned value, None for anything else."""
        if isinstance(expr, ParamRef):
            at = self._where.params[expr.index]
            if expr.width_bits > 64:
                return f"ina_u128_of(args[{at + 1}], args[{at}])", expr.width_bits
            return f"args[{at}]", expr.width_bits
        if isinstance(expr, Lookahead):
            return self.lookahead(expr), expr.width_bits
        if isinstance(expr, StackFieldRef) and expr.index is not None:
            inside = self.in_stack(expr.stack, expr.index)
            return f"({inside} ? {self.lvalue(expr)} : 0)", expr.width_bits
        if isinstance(expr, (FieldRef, StackFieldRef, LocalRef, ArrayFieldRef)):
            return self.lvalue(expr), expr.width_bits
        return None

    def lookahead(self, expr: Lookahead) -> str:
        """Bits ahead of the cursor; the parser has checked that they are there."""
        offset, width = expr.offset_bits, expr.width_bits
        if offset % 8 == 0 and width % 8 == 0 and width <= 64:
            return f"ina_load({self._layout.frame.at_cursor} + {offset // 8}, {width // 8})"
        return f"ina_load_bits({self._layout.frame.at_cursor}, {offset}, {width})"

    # -- Booleans --

    def boolean(self, expr: Expr) -> str:
        """A C condition."""
        if isinstance(expr, BoolConst):
            return "true" if expr.value else "false"
        if isinstance(expr, Valid):
            return self._layout.valid(expr.header)
        if isinstance(expr, StackValid):
            size = len(self._layout.program.stacks[expr.stack].members)
            index = self.exact(expr.index, 64)
            stack = self._layout.stack(expr.stack)
            inside = self.in_stack(expr.stack, expr.index)
            return f"({inside} && {stack}_valid[ina_min_u64({index}, {size - 1})])"
        if isinstance(expr, Unary) and expr.op == "not":
            return f"!{self.boolean(expr.operand)}"
        if isinstance(expr, Unary) and expr.op == "d2b":
            return f"({self.value(expr.operand)} != 0)"
        if isinstance(expr, Binary) and expr.op in ("and", "or"):
            op = "&&" if expr.op == "and" else "||"
            return f"({self._test(expr.left)} {op} {self._test(expr.right)})"
        if isinstance(expr, Binary) and expr.op in COMPARISONS:
            if is_bool(expr.left) and is_bool(expr.right):
                return (
                    f"((bool){self.boolean(expr.left)} {expr.op} (bool){self.boolean(expr.right)})"
                )
            ctype = self._common(expr.left, expr.right)
            left, right = self._as(expr.left, ctype), self._as(expr.right, ctype)
            return f"({left} {expr.op} {right})"
        if isinstance(expr, Select):
            then, otherwise = self.boolean(expr.then), self.boolean(expr.otherwise)
            return f"({self.boolean(expr.condition)} ? {then} : {otherwise})"
        return f"({self.value(expr)} != 0)"

    def _test(self, expr: Expr) -> str:
        """A comparison as an operand of && or ||.

        GCC's front end would merge neighbours (a.x == 1 && a.y == 2) into one wide load; that keeps
        the struct in memory and stalls on the narrow stores before it; a function call stops it.
        """
        code = self.boolean(expr)
        is_comparison = isinstance(expr, Binary) and expr.op in COMPARISONS
        return f"ina_test{code}" if is_comparison else code

    def _common(self, *exprs: Expr) -> CType:
        ranges = [range_of(expr) for expr in exprs]
        return type_for(min(low for low, _ in ranges), max(high for _, high in ranges))

    # -- exact --

    def value(self, expr: Expr) -> str:
        """The exact value in the type of its range."""
        return self._as(expr, type_for(*range_of(expr)))

    def exact(self, expr: Expr, bits: int) -> str:
        """The exact value, at least ``bits`` wide, unsigned if it cannot be negative."""
        low, high = range_of(expr)
        ctype = type_for(low, max(high, (1 << bits) - 1 if low >= 0 else (1 << (bits - 1)) - 1))
        return self._as(expr, ctype)

    def _as(self, expr: Expr, ctype: CType) -> str:
        """The exact value converted to ``ctype``, which holds it."""
        if is_bool(expr):
            return f"({ctype.c}){self.boolean(expr)}"
        if isinstance(expr, Const):
            text = literal(expr.value)
            return text if ctype.bits <= 32 or abs(expr.value) >= 1 << 31 else f"({ctype.c}){text}"
        leaf = self._leaf(expr)
        if leaf is not None:
            code, width = leaf
            signed = getattr(expr, "signed", False)
            if signed:
                extend = "ina_sign_extend128" if width > 64 else "ina_sign_extend"
                return f"({ctype.c}){extend}({code}, {width})"
            wide = isinstance(expr, (ParamRef, Lookahead, StackFieldRef)) and ctype.bits != 64
            if container_bits(width) == ctype.bits and not ctype.signed and not wide:
                return code
            return f"({ctype.c}){code}"
        if isinstance(expr, StackInfo):
            stack = self._layout.stack(expr.stack)
            last = " - 1" if expr.what == "last_index" else ""
            return f"(({ctype.c}){stack}_next{last})"
        if isinstance(expr, Unary) and expr.op == "b2d":
            return f"({ctype.c})({self.boolean(expr.operand)} ? 1 : 0)"
        if isinstance(expr, Unary):
            return f"({expr.op}{self._as(expr.operand, self._wide(expr, expr.operand, ctype))})"
        if isinstance(expr, Select):
            condition = self.boolean(expr.condition)
            return (
                f"({condition} ? {self._as(expr.then, ctype)} : {self._as(expr.otherwise, ctype)})"
            )
        if isinstance(expr, Cast):
            return f"({ctype.c}){self._cast(expr)}"
        assert isinstance(expr, Binary)
        return self._exact_binary(expr, ctype)

    def _wide(self, *needs: Expr | CType) -> CType:
        """A type for a computation and all its operands."""
        ranges = [range_of(need) for need in needs if not isinstance(need, CType)]
        own = type_for(min(low for low, _ in ranges), max(high for _, high in ranges))
        return own

    def _exact_binary(self, expr: Binary, ctype: CType) -> str:
        if expr.op == "&" and isinstance(expr.right, Const) and expr.right.value >= 0:
            # A mask makes the value small, however large the operand is.
            code, _ = self.modular(expr, expr.right.value.bit_length() or 1)
            return f"({ctype.c}){code}"
        wide = self._wide(expr, expr.left, expr.right) if expr.op != "<<" else self._wide(expr)
        if expr.op in ("<<", ">>"):
            if expr.op == ">>":
                wide = type_for(*range_of(expr.left))
            left, right = self._as(expr.left, wide), self.exact(expr.right, 64)
            if isinstance(expr.right, Const) and expr.right.value < wide.bits:
                return f"(({ctype.c})({left} {expr.op} {expr.right.value}))"
            name = {"<<": "shl", ">>": "shr"}[expr.op]
            if expr.op == "<<":
                unsigned = f"(u{CType(wide.bits, True).c})" if wide.bits < 128 else "(ina_u128)"
                return f"({ctype.c})ina_{name}{wide.bits}({unsigned}{left}, {right})"
            bits = max(wide.bits, 64)
            return f"({ctype.c})ina_{name}_{'i' if wide.signed else 'u'}{bits}({left}, {right})"
        left, right = self._as(expr.left, wide), self._as(expr.right, wide)
        if expr.op in ("/", "%"):
            if isinstance(expr.right, Const) and expr.right.value > 0:
                return f"({ctype.c})({left} {expr.op} {right})"
            return f"({ctype.c})({right} == 0 ? 0 : {left} {expr.op} {right})"
        code = f"({left} {expr.op} {right})"
        return code if wide == ctype else f"({ctype.c}){code}"

    def _cast(self, expr: Cast) -> str:
        if expr.kind == "wrap":
            code, _ = self.modular(expr.operand, expr.width_bits)
            if expr.width_bits > 64:
                return f"ina_sign_extend128({code}, {expr.width_bits})"
            return f"ina_sign_extend({code}, {expr.width_bits})"
        low, high = range_of(expr)
        inner = type_for(*range_of(expr.operand))
        value = self._as(expr.operand, inner)
        bits = 128 if inner.bits == 128 or high >= 1 << 63 else 64
        if not inner.signed:
            return f"ina_min_u{bits}({value}, {literal(high)})"
        return f"ina_clamp_i{bits}({value}, {literal(low)}, {literal(high)})"

    # -- modulo 2^bits --

    def modular(self, expr: Expr, bits: int) -> tuple[str, int]:
        """Code whose low ``bits`` bits are right, and how many bits of it can be non-zero."""
        ctype = modular_type(bits)
        if isinstance(expr, Const):
            value = expr.value % (1 << bits)
            text = literal(value)
            if ctype.bits > 32 and value < 1 << 32:
                text = f"({ctype.c}){text}"
            return text, max(value.bit_length(), 1)
        leaf = self._leaf(expr)
        if leaf is not None and not getattr(expr, "signed", False):
            code, width = leaf
            same = container_bits(width) == ctype.bits and not isinstance(
                expr, (ParamRef, Lookahead)
            )
            code = code if same else f"({ctype.c}){code}"
            return code, min(width, ctype.bits)
        if isinstance(expr, Binary) and expr.op in ("+", "-", "*", "|", "^"):
            left, a = self.modular(expr.left, bits)
            right, b = self.modular(expr.right, bits)
            known = max(a, b) if expr.op in ("|", "^") else ctype.bits
            return f"({left} {expr.op} {right})", known
        if isinstance(expr, Binary) and expr.op == "&":
            return self._modular_and(expr, bits, ctype)
        if isinstance(expr, Binary) and expr.op == "<<":
            left, known = self.modular(expr.left, bits)
            if isinstance(expr.right, Const):
                if expr.right.value >= ctype.bits:
                    return "0", 1
                shifted = min(known + expr.right.value, ctype.bits)
                return f"({left} << {expr.right.value})", shifted
            amount = self.exact(expr.right, 64)
            return f"ina_shl{ctype.bits}({left}, {amount})", ctype.bits
        if isinstance(expr, Unary) and expr.op in ("~", "-"):
            operand, _ = self.modular(expr.operand, bits)
            return f"({ctype.c})({expr.op}{operand})", ctype.bits
        if isinstance(expr, Select):
            then, a = self.modular(expr.then, bits)
            otherwise, b = self.modular(expr.otherwise, bits)
            return f"({self.boolean(expr.condition)} ? {then} : {otherwise})", max(a, b)
        if isinstance(expr, Cast) and expr.kind == "wrap" and expr.width_bits >= bits:
            return self.modular(expr.operand, bits)
        low, high = range_of(expr)
        known = min(high.bit_length() or 1, ctype.bits) if low >= 0 else ctype.bits
        return f"({ctype.c}){self.value(expr)}", known

    def _modular_and(self, expr: Binary, bits: int, ctype: CType) -> tuple[str, int]:
        left, right = expr.left, expr.right
        if isinstance(left, Const) and not isinstance(right, Const):
            left, right = right, left
        if isinstance(right, Const) and right.value >= 0:
            mask = right.value % (1 << bits)
            wanted = max(mask.bit_length(), 1)
            code, known = self.modular(left, wanted)
            inner = modular_type(wanted)
            is_low_mask = mask == (1 << wanted) - 1
            if not (is_low_mask and known <= wanted):
                code, known = f"({code} & {literal(mask)})", wanted
            if inner != ctype:
                code = f"({ctype.c}){code}"
            return code, min(known, wanted)
        first, a = self.modular(left, bits)
        second, b = self.modular(right, bits)
        return f"({first} & {second})", min(a, b)

    def stored(self, expr: Expr, width_bits: int) -> str:
        """The value to store in a field of this width: nothing above the field's bits."""
        code, known = self.modular(expr, width_bits)
        if known > width_bits:
            if width_bits in (8, 16, 32, 64, 128):
                return code  # the container cuts it
            mask = literal((1 << width_bits) - 1)
            return f"({code} & {mask})"
        return code
