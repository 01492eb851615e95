"""Integers of C: which type stores a field, which one holds a value, how a constant is spelled."""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import Field


def container(width_bits: int) -> str:
    """The C type that stores a field."""
    for bits in (8, 16, 32, 64):
        if width_bits <= bits:
            return f"uint{bits}_t"
    return "ina_u128"


def container_bits(width_bits: int) -> int:
    """Width of :func:`container`."""
    return next((bits for bits in (8, 16, 32, 64) if width_bits <= bits), 128)


@dataclass(frozen=True)
class CType:
    """A machine integer: 32, 64 or 128 bits."""

    bits: int
    signed: bool

    @property
    def c(self) -> str:
        """Its name in C."""
        if self.bits == 128:
            return "ina_i128" if self.signed else "ina_u128"
        return f"{'' if self.signed else 'u'}int{self.bits}_t"


def type_for(low: int, high: int) -> CType:
    """The smallest type that holds low..high."""
    for bits in (32, 64, 128):
        if low >= 0 and high < 1 << bits:
            return CType(bits, False)
        if low < 0 and low >= -(1 << (bits - 1)) and high < 1 << (bits - 1):
            return CType(bits, True)
    raise UnsupportedProgramError("an intermediate value of more than 128 bits")


def modular_type(bits: int) -> CType:
    """The unsigned type for arithmetic modulo 2^bits."""
    for width in (32, 64, 128):
        if bits <= width:
            return CType(width, False)
    raise UnsupportedProgramError("an intermediate value of more than 128 bits")


def literal(value: int) -> str:
    """An integer constant of a type that holds it."""
    if value < 0:
        if value == -(1 << 63):
            return "INT64_MIN"
        if value < -(1 << 63):
            return f"(-(ina_i128){literal(-value)})"
        return f"({value})" if value > -(1 << 31) else f"(-INT64_C({-value}))"
    if value < 1 << 31:
        return str(value) if value < 10 else hex(value)
    if value < 1 << 32:
        return f"{value:#x}u"
    if value < 1 << 64:
        return f"UINT64_C({value:#x})"
    high, low = value >> 64, value & ((1 << 64) - 1)
    return f"ina_u128_of(UINT64_C({high:#x}), UINT64_C({low:#x}))"


def load_field(field: Field, at: str) -> str:
    """Code that reads one field of a header whose bytes begin at ``at``."""
    first, last = field.offset_bits // 8, (field.offset_bits + field.width_bits - 1) // 8
    count = last - first + 1
    start = f"{at} + {first}" if first else at
    if count > 8:
        if field.offset_bits % 8 == 0 and field.width_bits == 128:
            return f"ina_u128_of(ina_load({start}, 8), ina_load({at} + {first + 8}, 8))"
        return f"ina_load_bits({at}, {field.offset_bits}, {field.width_bits})"
    code = f"ina_load({start}, {count})"
    shift = 8 * (last + 1) - (field.offset_bits + field.width_bits)
    if shift:
        code = f"{code} >> {shift}"
    if field.width_bits not in (8, 16, 32, 64, 8 * count):
        code = f"{code} & {(1 << field.width_bits) - 1:#x}"
    return code
