"""The typed pipeline: what a P4 program is, free of BMv2's JSON and of any target language."""

from ina.switch.ir.load import load_program
from ina.switch.ir.program import Program

__all__ = ["Program", "load_program"]
