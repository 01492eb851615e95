"""Boxes of the picture: what is written in each."""

from __future__ import annotations

from collections.abc import Iterable

from ina.switch.graph.model import Control, State, TableUse, last
from ina.switch.graph.svg import Box, Line
from ina.switch.ir.program import Action, Checksum, ParserState, Program
from ina.switch.ir.stmt import Extract

_MAX_TEXT = 58
_MAX_PLACES = 4


def state_box(program: Program, state: ParserState) -> Box:
    """A state of the parser and what it takes off the packet."""
    lines = [Line(state.name, "head")]
    for stmt in state.body:
        if isinstance(stmt, Extract):
            lines.append(Line(f"extract {stmt.name}, {_bytes(_extracted_bits(program, stmt))}"))
    return Box("state", state.name, lines, title=f"parser state {state.name}")


def _extracted_bits(program: Program, stmt: Extract) -> int:
    what = program.stacks[stmt.name] if stmt.stack else program.headers[stmt.name]
    return what.type.width_bits


def _bytes(bits: int) -> str:
    return "1 byte" if bits == 8 else f"{bits // 8} bytes"


def control_lines(control: Control) -> list[Line]:
    """What stands above a control's tables: its name and when a packet gets there."""
    named = f"control {control.name}" if control.name else "declared outside of controls"
    conditions = control.conditions or ()
    return [Line(named, "head"), *(_if(text) for text in conditions)]


def table_box(control: Control, use: TableUse) -> Box:
    """A table: when its control applies it, its keys, its actions, what a miss does."""
    table = use.table
    own_conditions = use.conditions[len(control.conditions or ()) :]
    lines = [Line(f"table {last(table.name)}", "head")]
    lines += [_if(text) for text in own_conditions]
    for key in table.keys:
        lines.append(Line(f"key  {key.name}: {key.width_bits} bits, {key.kind.value}"))
    if not table.keys:
        lines.append(Line("no key: always the default action"))
    lines += [Line(f"do   {_signature(action)}") for action in table.actions]
    default = next((a for a in table.actions if a.index == table.default.action), None)
    lines.append(Line(f"miss {last(default.name) if default else 'nothing'}"))
    notes = f"up to {table.max_size:,} entries"
    lines.append(Line(notes + (", counted" if table.has_direct_counter else ""), "faint"))
    conditions = "".join(f"\nif {text}" for text in use.conditions)
    return Box("table", table.name, lines, title=f"{table.name} {table.source}{conditions}")


def _signature(action: Action) -> str:
    return _short(f"{last(action.name)}({', '.join(last(p.name) for p in action.params)})")


def register_box(state: State) -> Box:
    """A register array or a counter, and who touches it."""
    first = last(state.names[0])
    name = first if len(state.names) == 1 else f"{first} .. {last(state.names[-1])}"
    size = f"{len(state.names)} x " if len(state.names) > 1 else ""
    size += f"{state.size:,} entries"
    size += f" of {state.width_bits} bits" if state.width_bits else ", packets and bytes"
    lines = [Line(f"{state.kind} {name}", "head"), Line(size)]
    if state.kind == "counter":
        lines += _uses("counts at", state.writes)
    else:
        lines += [*_uses("read at ", state.reads), *_uses("written ", state.writes)]
    if not state.users:
        lines.append(Line("touched by nobody", "faint"))
    return Box(state.kind, state.names[0], lines, title=" ".join(state.names))


def _uses(word: str, places: Iterable[str]) -> list[Line]:
    known = [place for place in places if place]
    if not known:
        return []
    shown = ", ".join(known[:_MAX_PLACES]) + (", ..." if len(known) > _MAX_PLACES else "")
    return [Line(f"{word} {shown}", "faint")]


def header_box(program: Program, name: str) -> Box:
    """A header in the order of sending."""
    bits = program.headers[name].type.width_bits
    return Box("header", name, [Line(name, "head"), Line(_bytes(bits))])


def checksum_box(checksum: Checksum) -> Box:
    """A checksum, and when it is computed."""
    target = f"{checksum.target.header}.{checksum.target.field}"
    when = [word for word, yes in (("verify", checksum.verify), ("update", checksum.update)) if yes]
    return Box("checksum", target, [Line(" and ".join(when), "head"), Line(target)])


def _if(text: str) -> Line:
    return Line("otherwise" if text == "otherwise" else f"if {_short(text)}", "faint")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
