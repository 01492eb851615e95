"""Copies of a packet: each starts from what ingress left, so what egress changes is kept aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, StackFieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import CopyHeader, CopyStack, SetValid, ShiftStack, Truncate
from ina.switch.ir.walk import pipeline_parts, targets, walk

_SET_FOR_EACH = frozenset({"egress_port", "egress_spec", "egress_rid"})
"""Fields of standard_metadata that a copy has of its own."""


@dataclass(frozen=True)
class Changed:
    """What egress or the update of checksums may change."""

    length: bool
    """Whether a packet may be truncated."""
    fields: tuple[FieldRef, ...]
    whole: tuple[str, ...]
    """Headers and stacks as a whole, with their validity."""


def changed_by_egress(program: Program) -> Changed:
    """But for what is set anew for each copy, and metadata that egress only writes."""
    parts = tuple(pipeline_parts(program, program.egress))
    whole: set[str] = set()  # headers and stacks
    length = False
    for node in walk(parts):
        if isinstance(node, (CopyHeader, SetValid)):
            ref = node.target if isinstance(node, CopyHeader) else node.header
            whole.add(ref.name)
        elif isinstance(node, (CopyStack, ShiftStack)):
            whole.add(node.target if isinstance(node, CopyStack) else node.stack)
        elif isinstance(node, Truncate):
            length = True
    updated = [checksum.target for checksum in program.checksums if checksum.update]
    assigned = [*targets(parts), *updated]
    for target in assigned:
        if isinstance(target, StackFieldRef):
            whole.add(target.stack)
        elif isinstance(target, ArrayFieldRef):
            whole.add(target.header)
    stack_of = {header.name: header.stack for header in program.headers.values()}
    names = tuple(dict.fromkeys(stack_of.get(name) or name for name in sorted(whole)))
    read = _read_fields(parts)
    fields = [
        target
        for target in dict.fromkeys(assigned)
        if isinstance(target, FieldRef)
        and (stack_of[target.header] or target.header) not in names
        and not (target.header == STANDARD and target.field in _SET_FOR_EACH)
        and (target in read or not program.headers[target.header].metadata)
    ]
    return Changed(length, tuple(fields), names)


def _read_fields(parts: tuple[Any, ...]) -> set[FieldRef]:
    """Fields that some expression reads (what is only assigned to is not read)."""
    refs = Counter(node for node in walk(parts) if isinstance(node, FieldRef))
    refs.subtract(Counter(t for t in targets(parts) if isinstance(t, FieldRef)))
    return {ref for ref, uses in refs.items() if uses > 0}
