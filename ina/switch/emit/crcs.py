"""CRCs over memory to C, and what the copies of a packet share of them."""

from __future__ import annotations

from ina.switch.emit.code import Code
from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.ir.expr import WholeArray
from ina.switch.ir.stmt import Hash, HashInput
from ina.switch.passes.hash_plans import WORD_BITS, HashPlan, Headed, Patched

_POLYNOMIAL = 0x104C11DB7


def planned(to: Code, stmt: Hash) -> HashPlan | None:
    """How the hash is taken from memory here; None: it is not."""
    main = to.layout.plan.main
    here = to.where.late_arrays and to.layout.memory.puts_arrays
    return main.hashes.get(stmt) if main and here else None


def emit_crc(to: Code, plan: HashPlan) -> str:
    """Returns the CRC, as C."""
    if isinstance(plan, Patched):
        return _patched(to, plan)
    return _headed(to, plan)


def _patched(to: Code, plan: Patched) -> str:
    for name, mask in (("keep", plan.keep), ("ones", plan.ones)):
        to.out.line(f"static const uint8_t {name}[] = {{{', '.join(map(hex, mask))}}};")
    where = f"p->data + {plan.first_bytes}, {plan.size_bytes}"
    return f"~ina_crc32_patched(0xffffffffu, {where}, keep, ones, {len(plan.keep)})"


def _headed(to: Code, plan: Headed) -> str:
    out, array = to.out, plan.array
    with out.block("const uint64_t head[] =", tail="};"):
        for inputs in plan.words:
            out.line(f"__builtin_bswap64({_value(to, inputs)}),")
    known, crc = shared_crc(to.layout, array.header)
    with out.block(f"if (!{known})"):
        out.line(f"{crc} = {_crc_of_array(to.layout, array)};")
        out.line(f"{known} = true;")
    size = array.count * array.width_bits // 8
    near, far, power = distance(size)
    out.line(f"static const ina_crc_distance over = {{{near:#x}, {far:#x}, {power:#x}}};")
    return f"~ina_crc32_headed(0xffffffffu, head, {len(plan.words)}, &over, {crc})"


def _value(to: Code, inputs: tuple[HashInput, ...]) -> str:
    terms, below = [], WORD_BITS
    for item in inputs:
        below -= item.width_bits
        code = f"(uint64_t){to.expr.stored(item.value, item.width_bits)}"
        terms.append(f"{code} << {below}" if below else code)
    return " | ".join(terms)


def _crc_of_array(layout: Layout, array: WholeArray) -> str:
    field = layout.program.headers[array.header].type.fields[array.first]
    wire = f"{layout.wire(array.header)} + {field.offset_bits // 8}"
    arguments = f"{layout.kept_in(array.header)}, {wire}, {array.count}"
    return f"ina_crc32_of_array_{array.width_bits}({arguments})"


def shared_arrays(layout: Layout) -> list[str]:
    """Headers of arrays whose CRC the copies of a packet share."""
    main = layout.plan.main
    plans = main.hashes.values() if main else ()
    return sorted({plan.array.header for plan in plans if isinstance(plan, Headed)})


def shared_crc(layout: Layout, header: str) -> tuple[str, str]:
    """The packet's members that say whether the array's CRC is known, and which it is."""
    name = f"p->{layout.name(header)}"
    return f"{name}_crc_known", f"{name}_crc"


def emit_members_of_crcs(layout: Layout, out: Writer) -> None:
    """Members of a packet."""
    for header in shared_arrays(layout):
        name = layout.name(header)
        out.line(f"bool {name}_crc_known;")
        out.line(f"uint32_t {name}_crc; // of its values, gone on from 0")


def forget_crcs(layout: Layout, out: Writer) -> None:
    """Before copies are made."""
    for header in shared_arrays(layout):
        out.line(f"{shared_crc(layout, header)[0]} = false;")


def distance(size_bytes: int) -> tuple[int, int, int]:
    """What ``ina_crc_distance`` has of so many bytes: ``near``, ``far``, ``power``."""
    bits = 8 * size_bytes
    return _power(bits - 32) << 1, _power(bits + 32) << 1, _power(bits)


def _power(exponent: int) -> int:
    """x^exponent modulo the polynomial, its 32 bits in reverse."""
    value = 1
    for _ in range(exponent):
        value <<= 1
        if value >> 32:
            value ^= _POLYNOMIAL
    return int(f"{value:032b}"[::-1], 2)
