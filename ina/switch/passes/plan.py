"""The plan of a program: everything that is decided before code is written, in any language.

An emitter walks it and decides nothing but names and spelling. Statements and expressions are those
of :mod:`ina.switch.ir`; what is decided about one of them is found by its name or its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ina.switch.ir.expr import Expr, FieldRef, WholeArray
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Block, Hash
from ina.switch.ir.walk import pipeline_parts, walk
from ina.switch.passes.copies import Changed, changed_by_egress, counts_length
from ina.switch.passes.early import early_tables
from ina.switch.passes.entry_fields import EntryFields, entry_fields
from ina.switch.passes.forward import forward_program
from ina.switch.passes.fusion import RegisterGroup, fuse
from ina.switch.passes.hash_plans import HashPlan, hashes_late_arrays, plan_hashes
from ina.switch.passes.hashes import gather_program
from ina.switch.passes.late_arrays import LateArray, find_late_arrays
from ina.switch.passes.late_fields import LateFields, late_fields
from ina.switch.passes.loops import LoopPlan, plan_loops
from ina.switch.passes.main_path import (
    Gate,
    MainIngress,
    ParserPath,
    find_parser_path,
    main_ingress,
)
from ina.switch.passes.parsing import MainStep, StatePlan, plan_states, plan_steps
from ina.switch.passes.reroll import reroll_program
from ina.switch.passes.sending import ChecksumPlan, main_runs, plan_checksums
from ina.switch.passes.storage import Storage, apart_headers, store_headers, store_metadata
from ina.switch.passes.tables import TablePlan, plan_tables
from ina.switch.passes.unpacking import Fields, unpack_at_changes
from ina.switch.passes.uses import TypeUse, find_uses
from ina.switch.passes.windows import ByteWindow, find_windows


@dataclass(frozen=True)
class MainPath:
    """The way of usual packets, which has code of its own; any other packet takes the general one.

    A packet goes it if it is long enough, ``before`` hold, ``windows`` match, the parser's steps
    are taken, ``after`` hold, and so do ``of_computed``.
    """

    steps: tuple[MainStep, ...]
    size_bytes: int
    """Of all headers that the steps extract."""
    before: tuple[Expr, ...]
    """Conditions that can be asked before the packet is parsed."""
    windows: tuple[ByteWindow, ...]
    after: tuple[Expr, ...]
    """Conditions that are asked when it is parsed."""
    computed: Block
    """What is done then, before anything else changes: it assigns to variables of the packet's."""
    of_computed: tuple[Expr, ...]
    """Conditions that are asked of those; if one fails, what was computed is forgotten."""
    gates: tuple[Gate, ...]
    """It passes them; ``ingress`` begins with what their actions do."""
    ingress: Block
    early: tuple[str, ...]
    """Tables that are looked up before ``after`` is asked, in the order of their lookups. A packet
    that one of them has no entry for leaves the path."""
    entry_fields: EntryFields
    """Read from the entries of early tables, until ingress is over."""
    late_fields: LateFields
    """Read where they stand until ingress is over, unpacked if the packet leaves."""
    unpacked: Fields
    """Unpacked by ``ingress``."""
    late_arrays: Mapping[str, LateArray]
    """By header: arrays that are never unpacked."""
    hashes: Mapping[Hash, HashPlan]
    """Of ``computed`` and of egress: those that are over memory."""
    hashes_late_arrays: bool
    """Whether egress does."""
    loops: Mapping[int, LoopPlan]
    """Of ``ingress``, by number."""
    headers_bytes: int
    """What stands before the first late array."""
    tail_header: str | None
    """The header that is read where it lies if it is apart from the rest of the frame: the last
    one, if it is a late array and nothing else, and no hash before egress is over it."""
    deparse: tuple[tuple[str, ...], ...]
    """Headers in order, those together that stand one behind the other."""

    @property
    def has_trailer(self) -> bool:
        """Whether copies of a packet share a late array that they have more headers behind."""
        return any(late.has_trailer and late.is_written for late in self.late_arrays.values())


@dataclass(frozen=True)
class Plan:
    """A program and what is decided about it."""

    program: Program
    """With loops where it had been unrolled."""
    types: Mapping[str, Storage]
    """By header type: what is kept unpacked."""
    metadata: Mapping[str, Storage]
    """By metadata instance: what is kept."""
    uses: Mapping[str, TypeUse]
    """By header type."""
    created: frozenset[str]
    """Headers that can become valid without being extracted."""
    apart: frozenset[str]
    """Headers that are kept apart from the rest of the packet, since they are indexed."""
    groups: tuple[RegisterGroup, ...]
    """Registers that lie together."""
    states: tuple[StatePlan, ...]
    """Of the parser: those that a packet can reach."""
    tables: tuple[TablePlan, ...]
    """As they are numbered."""
    loops: Mapping[int, LoopPlan]
    """Of ingress and egress, by number."""
    checksums: tuple[ChecksumPlan, ...]
    """In the program's order."""
    changed_by_egress: Changed
    """What each copy of a packet must find as ingress left it."""
    counts_length: bool
    """Whether egress is told the length with the headers that became valid or invalid before."""
    main: MainPath | None
    """None: all packets take the general code."""

    @cached_property
    def tables_by_name(self) -> dict[str, TablePlan]:
        """By the table's name."""
        return {plan.table.name: plan for plan in self.tables}

    @cached_property
    def group_of(self) -> dict[str, RegisterGroup]:
        """By a register's name."""
        return {name: group for group in self.groups for run in group.runs for name in run}

    @property
    def first_bytes(self) -> tuple[int, int]:
        """Bytes that packets are looked at first, from .. to: the last of their headers.

        Most of what is before them (Ethernet addresses) only a packet that leaves needs.
        """
        last = self.main.headers_bytes - 1 if self.main else 64
        return max(last - 63, 0), last

    def in_packet(self, ref: FieldRef, *, late: bool) -> bool:
        """Whether the field is read from the packet's bytes. ``late``: on the main path, as long
        as its late fields are not unpacked."""
        if late and self.main and (ref.header, ref.field) in self.main.late_fields:
            return True
        return ref.field in self.uses[self.program.headers[ref.header].type.name].in_place


def make_plan(program: Program, *, main_path: bool = True) -> Plan:
    """Decides. ``main_path`` False: all packets take the general code, to compare.

    Raises UnsupportedProgramError.
    """
    program = reroll_program(gather_program(forward_program(program)))
    uses = find_uses(program)
    types = store_headers(program, uses)
    groups = fuse(program)
    path = find_parser_path(program) if main_path and not program.turns else None
    usual = main_ingress(program, path) if path else None
    late: LateFields = frozenset()
    unpacked: Fields = frozenset()
    if path and usual:
        late = late_fields(program, path, usual.block, types)
        usual, unpacked = unpack_at_changes(program, path, usual, types)

    def in_packet(ref: FieldRef) -> bool:
        return ref.field in uses.types[program.headers[ref.header].type.name].in_place

    def in_packet_on_main(ref: FieldRef) -> bool:
        return (ref.header, ref.field) in late or in_packet(ref)

    pipelines = (
        *pipeline_parts(program, program.ingress),
        *pipeline_parts(program, program.egress),
    )
    plan = Plan(
        program=program,
        types=types,
        metadata=store_metadata(program, uses),
        uses=uses.types,
        created=uses.created,
        apart=apart_headers(program, types),
        groups=groups,
        states=plan_states(program),
        tables=plan_tables(program, in_packet, in_packet_on_main),
        loops=plan_loops(program, pipelines, groups, {}),
        checksums=plan_checksums(program, uses, usual.facts if usual else None),
        changed_by_egress=changed_by_egress(program),
        counts_length=counts_length(program),
        main=None,
    )
    if not (path and usual):
        return plan
    return replace(plan, main=_plan_main(plan, path, usual, late, unpacked))


def _plan_main(
    plan: Plan, path: ParserPath, usual: MainIngress, late: LateFields, unpacked: Fields
) -> MainPath:
    program = plan.program
    late_arrays = find_late_arrays(program, path, usual, plan.types, plan.uses)
    firsts = (path.offsets_bytes[name] for name in late_arrays)
    headers_bytes = min(firsts, default=path.size_bytes)
    asked = (usual.computed, tuple(pipeline_parts(program, usual.block)))
    last = max(path.offsets_bytes, key=path.offsets_bytes.__getitem__)
    in_packet = {(name, field) for name, field in late} | {
        (name, field)
        for name in path.offsets_bytes
        for field in plan.uses[program.headers[name].type.name].in_place
    }
    early = early_tables(program, usual.block, frozenset(in_packet))
    hashed = (node.header for node in walk(asked) if isinstance(node, WholeArray))
    is_apart = (
        last in late_arrays
        and late_arrays[last].fills_header
        and path.offsets_bytes[last] == headers_bytes  # no other one is read there
        and last not in hashed
    )
    return MainPath(
        steps=plan_steps(program, path),
        size_bytes=path.size_bytes,
        before=usual.before,
        windows=find_windows(usual.matches, path.size_bytes, headers_bytes),
        after=usual.after,
        computed=usual.computed,
        of_computed=usual.of_computed,
        gates=usual.gates,
        ingress=usual.block,
        early=tuple(early),
        entry_fields=entry_fields(
            program, usual, frozenset(early), plan.tables_by_name, plan.metadata
        ),
        late_fields=late,
        unpacked=unpacked,
        late_arrays=late_arrays,
        hashes_late_arrays=hashes_late_arrays(program, late_arrays),
        hashes=plan_hashes(program, path, usual, late_arrays, frozenset(in_packet)),
        loops=plan_loops(program, pipeline_parts(program, usual.block), plan.groups, late_arrays),
        headers_bytes=headers_bytes,
        tail_header=last if is_apart else None,
        deparse=main_runs(program, path, plan.created, plan.apart),
    )
