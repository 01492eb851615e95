"""A program as people read it: P4 but for what every program has alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fuzz.programs.model import (
    META,
    STANDARD,
    Action,
    Advance,
    Ahead,
    Apply,
    Arg,
    Assign,
    Block,
    Bool,
    Both,
    Call,
    Choice,
    Compare,
    Copy,
    Count,
    Drop,
    Entry,
    Exit,
    Extract,
    Field,
    Hash,
    If,
    Invert,
    IsValid,
    Key,
    Last,
    Not,
    Num,
    Op,
    Program,
    Read,
    Ref,
    SetValid,
    Shift,
    State,
    Stmt,
    Table,
    To,
    Truncate,
    Verify,
    Write,
)

_INDENT = "    "


def show(program: Program) -> str:
    """Some tens of lines."""
    return "\n".join(_lines(program)) + "\n"


def _lines(program: Program) -> Iterator[str]:
    for name, fields in program.types:
        yield f"header {name} {{ {_fields(fields)} }}"
    for it in program.headers:
        yield f"{it.type}{f'[{it.stack_size}]' if it.stack_size else ''} hdr.{it.name};"
    if program.meta:
        yield f"struct meta_t {{ {_fields(program.meta)} }}"
    for register in program.registers:
        yield f"register<bit<{register.width_bits}>>({register.size}) {register.name};"
    for name, size in program.counters:
        yield f"counter({size}) {name};"
    for state in program.states:
        yield from _state(state)
    for action in program.actions:
        yield from _action(action)
    for table in program.tables:
        yield from _table(table)
    for title, block in (("ingress", program.ingress), ("egress", program.egress)):
        if block:
            yield f"{title} {{"
            yield from _block(block, 1)
            yield "}"
    for checksum in program.checksums:
        for is_there, what in ((checksum.verify, "verify"), (checksum.update, "update")):
            if is_there:
                inputs = ", ".join(text(it) for it in checksum.inputs)
                condition = text(checksum.condition)
                target = text(checksum.target)
                yield f"{what}_checksum({condition}, {{{inputs}}}, {target}, csum16);"
    yield "deparser: " + ", ".join(f"hdr.{name}" for name in program.deparse)
    for group in program.groups:
        copies = ", ".join(f"(port {port}, rid {rid})" for port, rid in group.copies)
        yield f"multicast group {group.number}: {copies}"


def _fields(fields: tuple[Field, ...]) -> str:
    return " ".join(f"{_type(it.width_bits, it.signed)} {it.name};" for it in fields)


def _type(width_bits: int, signed: bool) -> str:
    return f"{'int' if signed else 'bit'}<{width_bits}>"


def _state(state: State) -> Iterator[str]:
    yield f"state {state.name} {{"
    yield from _block(state.body, 1)
    if not state.keys:
        after = state.cases[0].state if state.cases else ""
        yield f"{_INDENT}transition {after or 'accept'};"
    else:
        yield f"{_INDENT}transition select({', '.join(text(key) for key in state.keys)}) {{"
        for case in state.cases:
            values = ", ".join(f"{value:#x} &&& {mask:#x}" for value, mask in case.values)
            yield f"{_INDENT * 2}{values or 'default'}: {case.state or 'accept'};"
        yield f"{_INDENT}}}"
    yield "}"


def _action(action: Action) -> Iterator[str]:
    params = ", ".join(f"bit<{width}> p{number}" for number, width in enumerate(action.params))
    if not action.body:
        yield f"action {action.name}({params}) {{ }}"
        return
    yield f"action {action.name}({params}) {{"
    yield from _block(action.body, 1)
    yield "}"


def _table(table: Table) -> Iterator[str]:
    keys = " ".join(f"{text(key.field)}: {key.kind};" for key in table.keys)
    const = "const " if table.default_const else ""
    counters = " counters = direct_counter;" if table.counted else ""
    yield (
        f"table {table.name} {{ key = {{ {keys} }} actions = {{ {'; '.join(table.actions)}; }} "
        f"{const}default_action = {_call(table.default)};{counters}"
    )
    for entry in table.entries:
        yield f"{_INDENT}{_entry(table.keys, entry)}"
    yield "}"


def _entry(keys: tuple[Key, ...], entry: Entry) -> str:
    words = []
    for key, (first, second) in zip(keys, entry.key, strict=True):
        between = {"exact": "", "lpm": "/", "range": ".."}.get(key.kind, " &&& ")
        second_word = f"{second}" if key.kind == "lpm" else f"{second:#x}"
        words.append(f"{first:#x}{between}{second_word if between else ''}")
    return f"priority {entry.priority}: {', '.join(words)} -> {_call(entry.call)}"


def _call(call: Call) -> str:
    return f"{call.action}({', '.join(f'{arg:#x}' for arg in call.args)})"


def _block(block: Block, depth: int) -> Iterator[str]:
    for stmt in block:
        for line in statement(stmt):
            yield _INDENT * depth + line


def _inside(block: Block) -> Iterator[str]:
    yield from _block(block, 1)


def statement(stmt: Stmt) -> Iterator[str]:
    """Its lines."""
    if isinstance(stmt, If):
        yield f"if ({text(stmt.condition)}) {{"
        yield from _inside(stmt.then)
        if stmt.otherwise:
            yield "} else {"
            yield from _inside(stmt.otherwise)
        yield "}"
    elif isinstance(stmt, Apply):
        yield from _applied(stmt)
    else:
        yield _SIMPLE[type(stmt)](stmt)


def _applied(stmt: Apply) -> Iterator[str]:
    if stmt.cases:
        yield f"switch ({stmt.table}.apply().action_run) {{"
        for name, block in stmt.cases:
            yield f"{_INDENT}{name}: {{"
            yield from _block(block, 2)
            yield f"{_INDENT}}}"
        yield "}"
    elif stmt.hit or stmt.miss:
        yield f"if ({stmt.table}.apply().hit) {{"
        yield from _inside(stmt.hit)
        if stmt.miss:
            yield "} else {"
            yield from _inside(stmt.miss)
        yield "}"
    else:
        yield f"{stmt.table}.apply();"


def _hash(it: Hash) -> str:
    inputs = ", ".join(text(ref) for ref in it.inputs)
    return f"hash({text(it.target)}, {it.algorithm}, {it.base}, {{{inputs}}}, {it.size});"


_SIMPLE: dict[type, Callable[[Any], str]] = {
    Assign: lambda it: f"{text(it.target)} = {text(it.value)};",
    SetValid: lambda it: f"hdr.{it.header}.set{'V' if it.valid else 'Inv'}alid();",
    Copy: lambda it: f"hdr.{it.target} = hdr.{it.value};",
    Shift: lambda it: f"hdr.{it.stack}.{'push' if it.count > 0 else 'pop'}_front({abs(it.count)});",
    Read: lambda it: f"{it.register}.read({text(it.target)}, {text(it.index)});",
    Write: lambda it: f"{it.register}.write({text(it.index)}, {text(it.value)});",
    Count: lambda it: f"{it.counter}.count({text(it.index)});",
    Hash: _hash,
    Drop: lambda _: "mark_to_drop(sm);",
    Truncate: lambda it: f"truncate({it.length_bytes});",
    Exit: lambda _: "exit;",
    Extract: lambda it: f"pkt.extract(hdr.{it.header});",
    Verify: lambda it: f"verify({text(it.condition)}, error.{it.error});",
    Advance: lambda it: f"pkt.advance({8 * it.count_bytes});",
}


def text(it: Any) -> str:
    """An expression."""
    return _EXPRESSIONS[type(it)](it)


def _ref(it: Ref) -> str:
    name = {STANDARD: "sm", META: "meta"}.get(it.header, f"hdr.{it.header}")
    return f"{name}.isValid()" if it.field == "$valid$" else f"{name}.{it.field}"


_EXPRESSIONS: dict[type, Callable[[Any], str]] = {
    Num: lambda it: f"{it.width_bits}{'s' if it.signed else 'w'}{it.value:#x}",
    Bool: lambda it: str(it.value).lower(),
    Ref: _ref,
    Last: lambda it: f"hdr.{it.stack}.last.{it.field}",
    Ahead: lambda it: f"pkt.lookahead<bit<{it.width_bits}>>()",
    Arg: lambda it: f"p{it.index}",
    Op: lambda it: f"({text(it.left)} {it.op} {text(it.right)})",
    Invert: lambda it: f"{it.op}{text(it.operand)}",
    To: lambda it: f"({_type(it.width_bits, it.signed)}){text(it.operand)}",
    Choice: lambda it: f"({text(it.condition)} ? {text(it.then)} : {text(it.otherwise)})",
    Compare: lambda it: f"{text(it.left)} {it.op} {text(it.right)}",
    Both: lambda it: f"({text(it.left)} {it.op} {text(it.right)})",
    Not: lambda it: f"!{text(it.operand)}",
    IsValid: lambda it: f"hdr.{it.header}.isValid()",
}
