"""What leaves: checksums taken from a packet's own bytes, headers that are copied together."""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.ir.expr import Expr
from ina.switch.ir.program import Checksum, Program
from ina.switch.passes.main_path import ParserPath
from ina.switch.passes.specialise import Facts, known
from ina.switch.passes.uses import Uses, reads_wire


@dataclass(frozen=True)
class ChecksumPlan:
    """One checksum of the program."""

    checksum: Checksum
    from_packet: bool
    """Whether what the program leaves alone is summed as it stands in the packet."""
    written: frozenset[str]
    """Fields of the checksum's header that the program may change."""
    main_condition: Expr | None
    """The condition, as far as it is known on the main path."""


def plan_checksums(program: Program, uses: Uses, facts: Facts | None) -> tuple[ChecksumPlan, ...]:
    """In the program's order. ``facts``: of the main path, None if there is none."""
    return tuple(
        ChecksumPlan(
            checksum,
            reads_wire(program, uses.created, checksum),
            uses.types[program.headers[checksum.target.header].type.name].written,
            known(checksum.condition, facts)
            if checksum.condition is not None and facts is not None
            else checksum.condition,
        )
        for checksum in program.checksums
    )


def main_runs(
    program: Program, path: ParserPath, created: frozenset[str], apart: frozenset[str]
) -> tuple[tuple[str, ...], ...]:
    """The headers to send, those together that lie one behind the other on the main path."""
    runs: list[tuple[str, ...]] = []
    end = -1  # where the run so far ends in the packet; -1: nothing may follow it
    for name in program.deparse:
        size = program.headers[name].type.width_bits // 8
        first = path.offsets_bytes.get(name)
        if first is None or name in created or name in apart:
            runs.append((name,))
            end = -1
        elif first == end:
            runs[-1] = (*runs[-1], name)
            end += size
        else:
            runs.append((name,))
            end = first + size
    return tuple(runs)
