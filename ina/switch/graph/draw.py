"""Lays the picture out: parser on top, then the pipelines downwards, then the deparser.

In a pipeline, the left column has the controls in the order of a packet, each with its tables; the
right column has the registers and counters, each beside the control that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.graph.boxes import (
    checksum_box,
    control_lines,
    header_box,
    register_box,
    state_box,
    table_box,
)
from ina.switch.graph.model import Control, Pipeline, pipelines
from ina.switch.graph.parser import parser_columns, transitions
from ina.switch.graph.svg import CHARACTER_PX, LINE_PX, PAD_PX, Box, Drawing, Line
from ina.switch.ir.program import Program

_MARGIN_PX = 20.0
_GAP_PX = 14.0
_WIDE_GAP_PX = 60.0
_HEAD_PX = 30.0  # of a section
_MAX_ROW_PX = 980.0
"""Boxes beside each other begin a new row when they get wider."""


def draw_program(program: Program, name: str = "") -> str:
    """Returns an SVG document of the program.

    Every table, register, counter and control is a ``<g>`` with its full name in ``data-name``
    (of registers that are drawn as one, the ``<title>`` has all names) and its kind in ``class``.
    """
    name = name or program.name
    drawing = Drawing(f"P4 program {name}")
    drawing.text(Line(name, "big"), _MARGIN_PX, 34)
    bottom = _draw_parser(drawing, program, 60.0)
    for pipeline in pipelines(program):
        bottom = _draw_pipeline(drawing, pipeline, bottom)
    _draw_deparser(drawing, program, bottom)
    return drawing.render()


def _section(drawing: Drawing, title: str, y: float) -> float:
    drawing.text(Line(title, "section"), _MARGIN_PX, y + 14)
    return y + _HEAD_PX


def _draw_parser(drawing: Drawing, program: Program, y: float) -> float:
    top = _section(drawing, "Parser", y)
    columns = parser_columns(program)
    places: dict[str, tuple[float, float, Box]] = {}
    x, bottom = _MARGIN_PX, top
    for column in columns:
        boxes = [state_box(program, program.states[name]) for name in column]
        below = top
        for box in boxes:
            places[box.name] = (x, below, box)
            below += box.height_px + _GAP_PX
        bottom = max(bottom, below)
        x += max(box.width_px for box in boxes) + _WIDE_GAP_PX
    for at_x, at_y, box in places.values():
        drawing.box(box, at_x, at_y)
    for edge in transitions(program):
        from_x, from_y, box = places[edge.origin]
        to_x, to_y, other = places[edge.target]
        start = (from_x + box.width_px, from_y + box.height_px / 2)
        end = (to_x, to_y + other.height_px / 2)
        drawing.arrow([start, end] if to_x > from_x else [start, (to_x + other.width_px / 2, to_y)])
    for edge in transitions(program):
        drawing.text(Line(f"{edge.origin} -> {edge.target}: {edge.label}", "faint"), _MARGIN_PX,
                     bottom + 12)  # fmt: skip
        bottom += LINE_PX
    return bottom + _GAP_PX


@dataclass(frozen=True)
class _Row:
    boxes: list[Box]

    @property
    def width_px(self) -> float:
        return sum(box.width_px + _GAP_PX for box in self.boxes) - _GAP_PX

    @property
    def height_px(self) -> float:
        return max(box.height_px for box in self.boxes)


def _rows(boxes: list[Box], width_px: float) -> list[_Row]:
    rows: list[_Row] = []
    for box in boxes:
        if rows and rows[-1].width_px + _GAP_PX + box.width_px <= width_px:
            rows[-1].boxes.append(box)
        else:
            rows.append(_Row([box]))
    return rows


def _draw_pipeline(drawing: Drawing, pipeline: Pipeline, y: float) -> float:
    y = _section(drawing, pipeline.name.capitalize(), y)
    tables = {
        control.name: _rows([table_box(control, use) for use in control.tables], _MAX_ROW_PX)
        for control in pipeline.controls
    }
    heads = {control.name: control_lines(control) for control in pipeline.controls}
    left_px = 2 * _GAP_PX + max(
        [row.width_px for rows in tables.values() for row in rows]
        + [len(line.text) * CHARACTER_PX for head in heads.values() for line in head]
    )
    former_bottom: float | None = None
    for control in pipeline.controls:
        middle = _MARGIN_PX + 40
        if former_bottom is not None:
            drawing.arrow([(middle, former_bottom), (middle, y)])
        rows, head = tables[control.name], heads[control.name]
        states_px = _draw_states(drawing, control, left_px, y)
        tables_px = len(head) * LINE_PX + 12 + sum(row.height_px + _GAP_PX for row in rows)
        height = max(states_px, tables_px)
        drawing.area("control", control.name, _MARGIN_PX, y, left_px, height, head[0].text)
        _draw_tables(drawing, head, rows, y)
        former_bottom = y + height
        y = former_bottom + 2 * _GAP_PX
    return y + _GAP_PX


def _draw_tables(drawing: Drawing, head: list[Line], rows: list[_Row], y: float) -> None:
    for index, line in enumerate(head):
        drawing.text(line, _MARGIN_PX + PAD_PX, y + 18 + index * LINE_PX)
    below = y + len(head) * LINE_PX + 12
    for row in rows:
        x = _MARGIN_PX + _GAP_PX
        for index, box in enumerate(row.boxes):
            drawing.box(box, x, below)
            if index:
                drawing.arrow([(x - _GAP_PX, below + 20), (x, below + 20)])
            x += box.width_px + _GAP_PX
        below += row.height_px + _GAP_PX


def _draw_states(drawing: Drawing, control: Control, left_px: float, y: float) -> float:
    """Draws them beside the control, from ``y`` down; returns their height."""
    x, below = _MARGIN_PX + left_px + _WIDE_GAP_PX, y
    for state in control.states:
        box = register_box(state)
        drawing.box(box, x, below)
        if state.users:
            height = below + box.height_px / 2
            ends = [(_MARGIN_PX + left_px, height), (x, height)]
            drawing.arrow(ends, both=bool(state.reads and state.writes))
        below += box.height_px + _GAP_PX
    return below - y - _GAP_PX


def _draw_deparser(drawing: Drawing, program: Program, y: float) -> None:
    if program.checksums:
        y = _section(drawing, "Checksums", y)
        y = _draw_chain(drawing, [checksum_box(c) for c in program.checksums], y, arrows=False)
    y = _section(drawing, "Deparser: headers that are valid, in this order", y)
    _draw_chain(drawing, [header_box(program, name) for name in program.deparse], y, arrows=True)


def _draw_chain(drawing: Drawing, boxes: list[Box], y: float, *, arrows: bool) -> float:
    for row in _rows(boxes, _MAX_ROW_PX):
        x = _MARGIN_PX
        for index, box in enumerate(row.boxes):
            drawing.box(box, x, y)
            if index and arrows:
                drawing.arrow([(x - _GAP_PX, y + 20), (x, y + 20)])
            x += box.width_px + _GAP_PX
        y += row.height_px + _GAP_PX
    return y + _GAP_PX
