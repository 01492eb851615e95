"""Where everything lives in the generated C: the members of its structs, by what they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ina.switch.emit.c_types import container, literal, load_field
from ina.switch.emit.frame import Frame
from ina.switch.emit.memory import Memory
from ina.switch.emit.names import Names
from ina.switch.ir.data import STANDARD, FieldArray
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, InPacket, StackFieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import RegisterRef
from ina.switch.passes.entry_fields import EntryField
from ina.switch.passes.fusion import RegisterGroup
from ina.switch.passes.plan import Plan
from ina.switch.passes.storage import Storage, array_names
from ina.switch.passes.tables import TablePlan


@dataclass(frozen=True)
class TypeLayout:
    """The struct of a header type or of a metadata instance."""

    storage: Storage
    c_name: str
    members: Mapping[str, str]
    """By field: its member, or element of an array."""
    arrays: Mapping[FieldArray, str]
    """Members that hold runs of fields."""
    declarations: tuple[str, ...]


@dataclass(frozen=True)
class GroupLayout:
    """An array of structs of registers in the state."""

    group: RegisterGroup
    c_name: str
    members: Mapping[str, str]
    """By register: its member, or element of an array."""
    arrays: Mapping[tuple[str, ...], str]

    def member(self, register: RegisterRef, counter: str) -> str:
        """The register's member; of a run of registers the one of this iteration."""
        if register.array:
            return f"{self.arrays[register.array]}[{counter}]"
        return self.members[register.name]


class Layout:
    """The C names of a plan, and how its state and its packets are reached."""

    def __init__(self, plan: Plan, memory: Memory, frame: Frame) -> None:
        self.plan = plan
        self.memory = memory
        self.frame = frame
        names = Names()
        self.types: dict[str, TypeLayout] = {}
        self.metadata: dict[str, TypeLayout] = {}
        for header in plan.program.headers.values():
            if header.metadata:
                storage = plan.metadata[header.name]
                self.metadata[header.name] = _lay_out(header.name, storage, names)
            elif header.type.name not in self.types:
                storage = plan.types[header.type.name]
                self.types[header.type.name] = _lay_out(header.type.name, storage, names)
        self.groups = tuple(_lay_out_group(group, names) for group in plan.groups)
        self._tables = {t.table.name: names.get("table", t.table.name) for t in plan.tables}
        counters = plan.program.counters
        self._counters = {c.name: names.get("counter", c.name) for c in counters}
        self._labels = {name: names.get("label", name) for name in plan.program.states}
        self._headers = {name: names.get("header", name) for name in _in_structs(plan)}

    @property
    def program(self) -> Program:
        """The plan's."""
        return self.plan.program

    # -- the packet --

    def name(self, header: str) -> str:
        """The member of a header (not of a stack's element), of metadata, or of a stack."""
        return self._headers[header]

    def header(self, name: str) -> str:
        """The struct of a header or metadata instance."""
        header = self.program.headers[name]
        if header.stack:
            return f"{self.stack(header.stack)}[{header.stack_index}]"
        where = self.frame.arrays if name in self.plan.apart else "p->"
        return where + self._headers[name]

    def valid(self, name: str) -> str:
        """The validity flag of a header instance."""
        header = self.program.headers[name]
        if header.stack:
            return f"{self.stack(header.stack)}_valid[{header.stack_index}]"
        return f"p->{self._headers[name]}_valid"

    def place(self, name: str) -> str:
        """The variable that says where the header stood in the packet, as of :class:`Frame`."""
        return f"p->{self._headers[name]}_wire"

    def wire(self, name: str) -> str:
        """A pointer to the bytes there."""
        return self.frame.bytes_at.format(self.place(name))

    def kept_in(self, header: str) -> str:
        """Where the values of a late array are, host order; NULL: as they came, in the packet."""
        return f"p->{self._headers[header]}_kept_in"

    def place_before(self, name: str) -> str:
        """What :meth:`place` is before the header was extracted: fields read in place are 0."""
        in_place = self.plan.uses[self.program.headers[name].type.name].in_place
        return self.frame.zeros if in_place else self.frame.nowhere

    def stack(self, name: str) -> str:
        """The array of a stack; ``_valid`` and ``_next`` are its companions."""
        return f"{self.frame.arrays}{self._headers[name]}"

    def type_of(self, header: str) -> TypeLayout:
        """Layout of an instance's type."""
        instance = self.program.headers[header]
        return self.metadata[header] if instance.metadata else self.types[instance.type.name]

    def field(self, ref: FieldRef, *, late: bool) -> str:
        """The member of a field, or a load from the packet for one that is read where it stands.

        ``late``: as in :meth:`ina.switch.passes.plan.Plan.in_packet`.
        """
        if isinstance(ref, InPacket) or self.plan.in_packet(ref, late=late):
            field = self.program.headers[ref.header].type.by_name[ref.field]
            load = load_field(field, self.wire(ref.header))
            return f"(({container(field.width_bits)})({load}))"
        if late and self.plan.main and ref in self.plan.main.entry_fields:
            return self._entry_field(ref, self.plan.main.entry_fields[ref])
        return f"{self.header(ref.header)}.{self.type_of(ref.header).members[ref.field]}"

    def _entry_field(self, ref: FieldRef, said: EntryField) -> str:
        plan = self.plan.tables_by_name[said.table]
        entry = f"early->{self.table(plan)}"
        if said.actions:
            chosen = self.memory.action(entry)
            test = " || ".join(f"{chosen} == {action}" for action in said.actions)
            return f"({test} ? {literal(said.value)} : 0)"
        word = self.memory.word(plan, entry, said.word)
        return f"(({container(ref.width_bits)}){word})"

    def stack_member(self, ref: StackFieldRef) -> str:
        """The member of a field within an element of a stack."""
        return self.types[self.program.stacks[ref.stack].type.name].members[ref.field]

    def array_field(self, ref: ArrayFieldRef, counter: str) -> str:
        """Element ``counter`` of the array that starts at or before field ``ref.first``."""
        for array, name in self.type_of(ref.header).arrays.items():
            if array.first <= ref.first < array.first + array.count:
                offset = ref.first - array.first
                index = f"{counter} + {offset}" if offset else counter
                return f"{self.header(ref.header)}.{name}[{index}]"
        raise AssertionError("a loop over fields that are no array")

    def array(self, header: str, array: FieldArray) -> str:
        """The member that holds a run of fields."""
        return f"{self.header(header)}.{self.type_of(header).arrays[array]}"

    def standard(self, field_name: str) -> str | None:
        """A standard_metadata field, or None if the program never mentions it."""
        layout = self.metadata.get(STANDARD)
        if layout is None or field_name not in layout.members:
            return None
        return f"{self.header(STANDARD)}.{layout.members[field_name]}"

    # -- the state --

    def table(self, plan: TablePlan) -> str:
        """The table's member; ``_slots`` and ``_index`` are its companions."""
        return self._tables[plan.table.name]

    def counter(self, name: str) -> str:
        """The counter's member."""
        return self._counters[name]

    def group(self, register: str) -> GroupLayout:
        """The group that a register belongs to."""
        return self.groups[self.plan.group_of[register].number]

    @cached_property
    def register_bits(self) -> dict[str, int]:
        """Widths of registers by name."""
        return {register.name: register.width_bits for register in self.program.registers}

    def label(self, state: str) -> str:
        """Of a parser state."""
        return f"state_{self._labels[state]}"


def _in_structs(plan: Plan) -> list[str]:
    """Headers, metadata and stacks in the order of their members: the first has the plain name."""
    headers = [h for h in plan.program.headers.values() if not h.stack]
    apart = [header.name for header in headers if header.name in plan.apart]
    return [*apart, *plan.program.stacks, *(header.name for header in headers)]


def _lay_out(name: str, storage: Storage, names: Names) -> TypeLayout:
    c_name, own = names.get("type", name) + "_type", Names()
    members: dict[str, str] = {}
    arrays: dict[FieldArray, str] = {}
    declarations = []
    first_of = {array.first: array for array in storage.arrays}
    for number, field in enumerate(storage.type.fields):
        array, c_type = first_of.get(number), container(field.width_bits)
        if array is not None:
            member = own.get("field", re.sub(r"\d+$", "", field.name) or "v")
            arrays[array] = member
            elements = array_names(storage.type, array)
            members |= {name: f"{member}[{i}]" for i, name in enumerate(elements)}
            declarations.append(f"_Alignas(64) {c_type} {member}[{array.count}];")
        elif field.name in storage.scalars:
            members[field.name] = member = own.get("field", field.name)
            declarations.append(f"{c_type} {member}; // bit<{field.width_bits}>")
    return TypeLayout(storage, c_name, members, arrays, tuple(declarations))


def _lay_out_group(group: RegisterGroup, names: Names) -> GroupLayout:
    c_name = names.get("register", group.runs[0][0])
    members: dict[str, str] = {}
    arrays: dict[tuple[str, ...], str] = {}
    for run in group.runs:
        is_array = len(run) > 1
        member = names.get(f"member {c_name}", run[0] + "_array" if is_array else run[0])
        if is_array:
            arrays[run] = member
        members |= {n: f"{member}[{i}]" if is_array else member for i, n in enumerate(run)}
    return GroupLayout(group, c_name, members, arrays)
