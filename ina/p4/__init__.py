"""The P4 programs: sources, compiled builds, names (docs/p4_guide.md)."""

from __future__ import annotations

from ina.p4.programs import CompiledProgram, compiled

__all__ = ["CompiledProgram", "compiled"]
