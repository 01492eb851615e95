"""A picture of a compiled P4 program: parser, controls, tables, registers, as SVG."""

from ina.switch.graph.draw import draw_program

__all__ = ["draw_program"]
