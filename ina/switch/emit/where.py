"""Where the code that is printed stands: what is known there, and under which name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ina.switch.ir.expr import Expr
from ina.switch.passes.loops import Element, LoopPlan


@dataclass(frozen=True)
class InLoop:
    """In the body of a loop; the counter is ``k``."""

    conditions: Mapping[Expr, str]
    """Variables of what was asked before the loop."""
    element: Element | None = None
    pointer: str = ""
    """To the element of the state that the loop touches."""
    out_of_range: bool = False
    """Whether there is no such element: registers read 0, and writes do nothing."""
    late: Mapping[str, str] = field(default_factory=dict)
    """By header: the variable that holds this iteration's element of a late array."""


@dataclass(frozen=True)
class Where:
    """A place in the generated code."""

    late: bool = False
    """On the main path, while its late fields stand in the packet."""
    late_arrays: bool = False
    """On the main path: its late arrays are not unpacked."""
    loops: Mapping[int, LoopPlan] = field(default_factory=dict)
    """Plans of the loops here, by number."""
    early: tuple[str, ...] = ()
    """Tables that have been looked up."""
    fixed: bool = False
    """Whether fixed tables have been read."""
    params: tuple[int, ...] = ()
    """In an action: where the words of each parameter begin in ``args``."""
    loop: InLoop | None = None


GENERAL = Where()
ON_MAIN = Where(late=True, late_arrays=True)
"""On the main path, before ingress."""
