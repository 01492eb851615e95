"""Where everything lives in the generated C: names, types, arrays, groups of registers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ina.switch.emit_c.headers import created_headers, header_uses, in_place_fields
from ina.switch.emit_c.late import Late, late_fields
from ina.switch.emit_c.late_arrays import find_late_arrays
from ina.switch.ir.data import STANDARD, Field, FieldArray, HeaderType, field_arrays
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, StackFieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.fusion import RegisterGroup, fuse
from ina.switch.passes.main_path import find_main_path, main_ingress

_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "true",
        "false",
        "type",
        "main",
        "errno",  # and what GCC defines
        "i386",
        "linux",
        "unix",
    ]
)
_RESERVED = frozenset(
    {
        "memory",
        "most_replicas",
        "data",
        "length",
        "offset",
        "truncate",
        "arrays",
        "mutex",
        "groups",
        "gathered",
        "unused",
    }
)
_SUFFIXES = (
    "_valid",
    "_wire",
    "_next",
    "_slots",
    "_index",
    "_array",
    "_slot",
    "_kept_in",
)  # made here from other names


def container(width_bits: int) -> str:
    """The C type that stores a field."""
    for bits in (8, 16, 32, 64):
        if width_bits <= bits:
            return f"uint{bits}_t"
    return "ina_u128"


def container_bits(width_bits: int) -> int:
    """Width of :func:`container`."""
    return next((bits for bits in (8, 16, 32, 64) if width_bits <= bits), 128)


_SPACES = {"table": "state", "counter": "state", "register": "state"}
"""Kinds whose identifiers share a C name space: P4 lets a table and a counter have one name."""


class Names:
    """Turns P4 names into distinct C identifiers."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._given: dict[tuple[str, str], str] = {}

    def get(self, kind: str, name: str) -> str:
        """The identifier of ``name``; the same one each time."""
        if (kind, name) not in self._given:
            base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
            taken_by_c = base in _KEYWORDS or base.upper() == base  # as C's macros are written
            if base[0].isdigit() or taken_by_c or base.startswith("ina_"):
                base = f"p4_{base}"
            space = _SPACES.get(kind, kind)
            if space in ("header", "state") and (base in _RESERVED or base.endswith(_SUFFIXES)):
                base += "_"
            unique, n = base, 1
            while f"{space}:{unique}" in self._taken:
                n += 1
                unique = f"{base}_{n}"
            self._taken.add(f"{space}:{unique}")
            self._given[kind, name] = unique
        return self._given[kind, name]


@dataclass(frozen=True)
class NamedArray(FieldArray):
    """A run of fields with the name of its C member."""

    name: str


@dataclass
class TypeLayout:
    """C members of a header type; ``arrays`` replace runs of fields."""

    type: HeaderType
    c_name: str
    members: dict[str, str] = field(default_factory=dict)  # field -> member expression
    arrays: list[NamedArray] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)


class Layout:
    """The C names of a program's state."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = Names()
        self.parser_parts = tuple(state.body for state in program.states.values())
        self.used: dict[str, set[str]] = {}
        for node in walk(tuple(all_parts(program))):
            if isinstance(node, FieldRef):
                self.used.setdefault(node.header, set()).add(node.field)
        self.uses = header_uses(program)
        self.created = created_headers(program)
        self.in_place = in_place_fields(program, self.uses)
        self.main_path = find_main_path(program)
        standard = self.used.setdefault(STANDARD, set())
        standard.update({"egress_spec", "mcast_grp"})
        self.types: dict[str, TypeLayout] = {}
        self.metadata: dict[str, TypeLayout] = {}
        for header in program.headers.values():
            if header.metadata:
                kept = tuple(
                    f for f in header.type.fields if f.name in self.used.get(header.name, ())
                )
                self.metadata[header.name] = self._layout(header.name, header.type, kept, False)
            elif header.type.name not in self.types:
                fields = header.type.fields
                self.types[header.type.name] = self._layout(
                    header.type.name, header.type, fields, True
                )
        self.main = main_ingress(program, self.main_path) if self.main_path else None
        self.main_ingress = self.main.block if self.main else ()
        self.late: Late = late_fields(self)
        self.late_arrays = find_late_arrays(self)
        self.headers_bytes = (
            min(
                (self.main_path.offsets_bytes[name] for name in self.late_arrays),
                default=self.main_path.size_bytes,
            )
            if self.main_path
            else 0
        )
        """On the main path: what stands before the first late array."""
        self.element_names: dict[str, str] = {}
        """In a loop over a late array, by header: the variable that holds its element."""
        self.on_main = False
        """Whether what is emitted now runs on the main path before its late fields are unpacked."""
        self.groups: list[RegisterGroup] = fuse(program, self.names)
        self.registers = {
            name: (group, member) for group in self.groups for name, member in group.members.items()
        }

    def _layout(
        self, name: str, header_type: HeaderType, fields: tuple[Field, ...], arrays: bool
    ) -> TypeLayout:
        layout = TypeLayout(header_type, self.names.get("type", name) + "_type")
        own = Names()
        runs = {array.first: array for array in field_arrays(header_type)} if arrays else {}
        position = 0
        while position < len(fields):
            first, run = fields[position], runs.get(position)
            ctype = container(first.width_bits)
            group = fields[position : position + (run.count if run else 1)]
            touched = self.uses[header_type.name].touched
            if arrays and not any(f.name in touched for f in group):
                position += len(group)  # only passed on: stays in the packet's bytes
                continue
            if arrays and first.name in self.in_place[header_type.name]:
                position += 1  # read where it stands
                continue
            if run is None:
                member = own.get("field", first.name)
                layout.members[first.name] = member
                layout.declarations.append(f"{ctype} {member}; // bit<{first.width_bits}>")
                position += 1
                continue
            name = own.get("field", re.sub(r"\d+$", "", first.name) or "v")
            layout.arrays.append(NamedArray(run.first, run.count, run.width_bits, name))
            layout.declarations.append(f"_Alignas(64) {ctype} {name}[{run.count}];")
            for i in range(run.count):
                layout.members[fields[position + i].name] = f"{name}[{i}]"
            position += run.count
        return layout

    def header(self, name: str) -> str:
        """The struct of a header or metadata instance."""
        header = self.program.headers[name]
        if header.metadata:
            return f"p->{self.names.get('header', name)}"
        if header.stack:
            return f"{self.stack(header.stack)}[{header.stack_index}]"
        where = "p->arrays->" if self.is_large(name) else "p->"
        return where + self.names.get("header", name)

    @property
    def tail_header(self) -> str | None:
        """The header that is read where it lies if it is a frame's tail (``ina_packet_in.tail``):
        the main path's last one, if it is a late array and nothing else."""
        path = self.main_path
        if path is None:
            return None
        for name in self.late_arrays:
            fields = self.type_of(name).type.fields
            end = path.offsets_bytes[name] + self.type_of(name).type.width_bits // 8
            if end == path.size_bytes and self.late_arrays[name].array.count == len(fields):
                return name
        return None

    @property
    def first_bytes(self) -> tuple[int, int]:
        """Bytes that packets are looked at first, from .. to: the last of their headers.

        Most of what is before them (Ethernet addresses) only a packet that leaves needs.
        """
        last = self.headers_bytes - 1 if self.main_path else 64
        return max(last - 63, 0), last

    def is_large(self, name: str) -> bool:
        """Whether the header holds arrays, or belongs to a stack.

        Such headers are kept apart from the rest of the packet: indexing them takes their address,
        and what has no address taken can live in machine registers.
        """
        header = self.program.headers[name]
        return bool(header.stack) or bool(self.type_of(name).arrays)

    def valid(self, name: str) -> str:
        """The validity flag of a header instance."""
        header = self.program.headers[name]
        if header.stack:
            return f"{self.stack(header.stack)}_valid[{header.stack_index}]"
        return f"p->{self.names.get('header', name)}_valid"

    def wire(self, name: str) -> str:
        """Where the header stood in the packet; else NULL, or zeros where fields are read."""
        return f"p->{self.names.get('header', name)}_wire"

    def kept_in(self, header: str) -> str:
        """Where the values of a late array are, host order; NULL: as they came, in the packet."""
        return f"p->{self.names.get('header', header)}_kept_in"

    def wire_before(self, name: str) -> str:
        """What :meth:`wire` is before the header was extracted: fields read in place are 0."""
        in_place = self.in_place[self.program.headers[name].type.name]
        return "ina_zeros" if in_place else "NULL"

    def stack(self, name: str) -> str:
        """The array of a stack; ``_valid`` and ``_next`` are its companions."""
        return f"p->arrays->{self.names.get('header', name)}"

    def type_of(self, header: str) -> TypeLayout:
        """Layout of an instance's type."""
        instance = self.program.headers[header]
        return self.metadata[header] if instance.metadata else self.types[instance.type.name]

    def field(self, ref: FieldRef) -> str:
        """The member of a field, or a load from the packet for one that is read in place."""
        if self.stands_in_packet(ref):
            field = self.program.headers[ref.header].type.by_name[ref.field]
            load = load_field(field, self.wire(ref.header))
            return f"(({container(field.width_bits)})({load}))"
        return f"{self.header(ref.header)}.{self.type_of(ref.header).members[ref.field]}"

    def stands_in_packet(self, ref: FieldRef) -> bool:
        """Whether the field is read from the packet's bytes, here and now."""
        header = self.program.headers[ref.header]
        late = self.on_main and (ref.header, ref.field) in self.late
        return late or ref.field in self.in_place.get(header.type.name, ())

    def stack_member(self, ref: StackFieldRef) -> str:
        """The member of a field within an element of a stack."""
        return self.types[self.program.stacks[ref.stack].type.name].members[ref.field]

    def array_field(self, ref: ArrayFieldRef, counter: str) -> str:
        """Element ``counter`` of the array that starts at or before field ``ref.first``."""
        if ref.header in self.element_names:
            return self.element_names[ref.header]
        layout = self.type_of(ref.header)
        for array in layout.arrays:
            if array.first <= ref.first < array.first + array.count:
                offset = ref.first - array.first
                index = f"{counter} + {offset}" if offset else counter
                return f"{self.header(ref.header)}.{array.name}[{index}]"
        raise AssertionError("a loop over fields that are no array")

    def standard(self, field_name: str) -> str | None:
        """A standard_metadata field, or None if the program never mentions it."""
        if field_name not in self.used[STANDARD]:
            return None
        layout = self.metadata.get(STANDARD)
        if layout is None or field_name not in layout.members:
            return None
        return f"{self.header(STANDARD)}.{layout.members[field_name]}"


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
