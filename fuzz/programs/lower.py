"""A program as the BMv2 JSON that p4c would write for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fuzz.programs.lower_values import (
    Json,
    expression,
    field_json,
    hexa,
    hexstr,
    truth_json,
    value_json,
)
from fuzz.programs.model import (
    META,
    STANDARD,
    Advance,
    Apply,
    Assign,
    Block,
    Call,
    Copy,
    Count,
    Drop,
    Exit,
    Extract,
    Field,
    Hash,
    If,
    Key,
    Program,
    Read,
    Ref,
    SetValid,
    Shift,
    Stmt,
    Table,
    Truncate,
    Verify,
    Write,
    type_of,
)

STANDARD_FIELDS = (
    ("ingress_port", 9), ("egress_spec", 9), ("egress_port", 9), ("instance_type", 32),
    ("packet_length", 32), ("enq_timestamp", 32), ("enq_qdepth", 19), ("deq_timedelta", 32),
    ("deq_qdepth", 19), ("ingress_global_timestamp", 48), ("egress_global_timestamp", 48),
    ("mcast_grp", 16), ("egress_rid", 16), ("checksum_error", 1), ("parser_error", 32),
    ("priority", 3), ("_padding", 3),
)  # fmt: skip
ERRORS = (
    ("NoError", 0), ("PacketTooShort", 1), ("NoMatch", 2), ("StackOutOfBounds", 3),
    ("HeaderTooShort", 4), ("ParserTimeout", 5), ("ParserInvalidArgument", 6),
)  # fmt: skip
_ALIASES = {
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"),
    "intrinsic_metadata": (
        "ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid",
        "priority",
    ),
}  # fmt: skip
TABLE_SIZE = 16
_KINDS = ("exact", "lpm", "ternary", "range")


def _argument(node: Json) -> Json:
    """Of a primitive: BMv2 wants an expression to say so twice."""
    if node["type"] == "local":
        return {**node, "type": "runtime_data"}
    return {"type": "expression", "value": node} if node["type"] == "expression" else node


class _Lowering:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.actions: list[Json] = []
        self.calculations: list[Json] = []
        self.tables: list[Json] = []
        self.conditionals: list[Json] = []
        self.ids = {action.name: number for number, action in enumerate(program.actions)}
        self.numbers = 0
        self.stacks = {it.name for it in program.headers if it.stack_size}
        for action in program.actions:
            self._add_action(action.name, action.params, action.body)

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _add_action(self, name: str, params: tuple[int, ...], body: Block) -> int:
        data = [{"name": f"p{at}", "bitwidth": width} for at, width in enumerate(params)]
        ops: list[Json] = []
        self._body(body, ops)
        number = len(self.actions)
        node = {"name": name, "id": number, "runtime_data": data, "primitives": ops}
        self.actions.append(node)
        return number

    # -- primitives --

    def _body(self, body: Block, ops: list[Json]) -> None:
        for stmt in body:
            if not isinstance(stmt, If):
                ops.append(self.primitive(stmt))
                continue
            zero = _argument(expression("b2d", None, truth_json(stmt.condition)))
            test = {"op": "_jump_if_zero", "parameters": [zero, hexstr(0)]}
            ops.append(test)
            self._body(stmt.then, ops)
            jump = {"op": "_jump", "parameters": [hexstr(0)]}
            if stmt.otherwise:
                ops.append(jump)
            test["parameters"][1] = hexstr(len(ops))  # type: ignore[index]
            self._body(stmt.otherwise, ops)
            jump["parameters"] = [hexstr(len(ops))]

    def primitive(self, stmt: Stmt) -> Json:
        """One statement of an action."""
        name, parameters = _PRIMITIVES[type(stmt)](self, stmt)
        return {"op": name, "parameters": [_argument(it) for it in parameters]}

    def _hash(self, stmt: Hash) -> tuple[str, list[Json]]:
        name = self.calculation(stmt.algorithm, stmt.inputs)
        base, size = hexstr(stmt.base, stmt.target.width_bits), hexstr(stmt.size, 32)
        calculation = {"type": "calculation", "value": name}
        return "modify_field_with_hash_based_offset", [
            field_json(stmt.target), base, calculation, size,
        ]  # fmt: skip

    def calculation(self, algorithm: str, inputs: tuple[Ref, ...]) -> str:
        """Adds one; its name."""
        number = len(self.calculations)
        self.calculations.append(
            {"name": f"calc_{number}", "id": number, "algo": algorithm,
             "input": [field_json(ref) for ref in inputs]}
        )  # fmt: skip
        return f"calc_{number}"

    # -- pipelines --

    def pipeline(self, name: str, number: int, block: Block) -> Json:
        """One of the two."""
        self.tables, self.conditionals = [], []
        first = self.block(block, None)
        return {
            "name": name, "id": number, "init_table": first, "tables": self.tables,
            "action_profiles": [], "conditionals": self.conditionals,
        }  # fmt: skip

    def block(self, block: Block, after: str | None) -> str | None:
        """The name of its first node; ``after`` that of what follows."""
        at = len(block)
        while at > 0:
            stmt = block[at - 1]
            if isinstance(stmt, If):
                after = self._conditional(stmt, after)
            elif isinstance(stmt, Apply):
                after = self._apply(stmt, after)
            else:
                first = at - 1
                while first > 0 and not isinstance(block[first - 1], (If, Apply, Exit)):
                    first -= 1
                after = self._plain(block[first:at], after)
                at = first + 1
            at -= 1
        return after

    def _conditional(self, stmt: If, after: str | None) -> str:
        name = f"node_{self._number()}"
        self.conditionals.append(
            {"name": name, "id": self._number(), "expression": truth_json(stmt.condition),
             "true_next": self.block(stmt.then, after),
             "false_next": self.block(stmt.otherwise, after)}
        )  # fmt: skip
        return name

    def _plain(self, stmts: Block, after: str | None) -> str:
        action = f"act_{self._number()}"
        number = self._add_action(action, (), stmts)
        self.tables.append(
            {"name": f"tbl_{action}", "id": self._number(), "key": [], "match_type": "exact",
             "type": "simple", "max_size": TABLE_SIZE, "with_counters": False,
             "support_timeout": False, "direct_meters": None, "action_ids": [number],
             "actions": [action], "base_default_next": after, "next_tables": {action: after},
             "default_entry": {"action_id": number, "action_const": True, "action_data": [],
                               "action_entry_const": True}}
        )  # fmt: skip
        return f"tbl_{action}"

    def _apply(self, stmt: Apply, after: str | None) -> str:
        table = self.program.table(stmt.table)
        if stmt.cases:
            blocks = dict(stmt.cases)
            nexts = {name: self.block(blocks.get(name, ()), after) for name in table.actions}
        elif stmt.hit or stmt.miss:
            nexts = {
                "__HIT__": self.block(stmt.hit, after),
                "__MISS__": self.block(stmt.miss, after),
            }
        else:
            nexts = dict.fromkeys(table.actions, after)
        self.tables.append(self._table(table, nexts, after))
        return table.name

    def _table(self, table: Table, nexts: dict[str, str | None], after: str | None) -> Json:
        kinds = [_of_bmv2(key) for key in table.keys]
        found: Json = {
            "name": table.name, "id": self._number(),
            "key": [{"match_type": kind, "name": f"{key.field.header}.{key.field.field}",
                     "target": [key.field.header, key.field.field], "mask": None}
                    for key, kind in zip(table.keys, kinds, strict=True)],
            "match_type": max(kinds, key=_KINDS.index, default="exact"), "type": "simple",
            "max_size": TABLE_SIZE, "with_counters": table.counted, "support_timeout": False,
            "direct_meters": None, "action_ids": [self.ids[name] for name in table.actions],
            "actions": list(table.actions), "base_default_next": after, "next_tables": nexts,
            "default_entry": {**self._call(table.default), "action_const": table.default_const,
                              "action_entry_const": table.default_const},
        }  # fmt: skip
        if table.entries:
            found["entries"] = [
                {"match_key": [_match(*pair) for pair in zip(table.keys, entry.key, strict=True)],
                 "action_entry": self._call(entry.call), "priority": entry.priority}
                for entry in table.entries
            ]  # fmt: skip
        return found

    def _call(self, call: Call) -> Json:
        widths = self.program.action(call.action).params
        data = [hexa(value, width) for value, width in zip(call.args, widths, strict=True)]
        return {"action_id": self.ids[call.action], "action_data": data}


def _of_bmv2(key: Key) -> str:
    return "ternary" if key.kind == "optional" else key.kind


def _match(key: Key, value: tuple[int, int]) -> Json:
    kind, width, (first, second) = _of_bmv2(key), key.field.width_bits, value
    if kind == "range":
        return {"match_type": kind, "start": hexa(first, width), "end": hexa(second, width)}
    if kind == "lpm":
        return {"match_type": kind, "key": hexa(first, width), "prefix_length": second}
    found = {"match_type": kind, "key": hexa(first, width)}
    return {**found, "mask": hexa(second, width)} if kind == "ternary" else found


def _copy(_: _Lowering, stmt: Copy) -> tuple[str, list[Json]]:
    headers = [{"type": "header", "value": name} for name in (stmt.target, stmt.value)]
    return "assign_header", headers


def _set_valid(_: _Lowering, stmt: SetValid) -> tuple[str, list[Json]]:
    name = "add_header" if stmt.valid else "remove_header"
    return name, [{"type": "header", "value": stmt.header}]


def _shift(_: _Lowering, stmt: Shift) -> tuple[str, list[Json]]:
    stack = {"type": "header_stack", "value": stmt.stack}
    return "push" if stmt.count > 0 else "pop", [stack, hexstr(abs(stmt.count))]


def _read(_: _Lowering, stmt: Read) -> tuple[str, list[Json]]:
    register = {"type": "register_array", "value": stmt.register}
    return "register_read", [field_json(stmt.target), register, value_json(stmt.index)]


def _write(_: _Lowering, stmt: Write) -> tuple[str, list[Json]]:
    register = {"type": "register_array", "value": stmt.register}
    return "register_write", [register, value_json(stmt.index), value_json(stmt.value)]


def _count(_: _Lowering, stmt: Count) -> tuple[str, list[Json]]:
    counter = {"type": "counter_array", "value": stmt.counter}
    return "count", [counter, value_json(stmt.index)]


def _assign(_: _Lowering, stmt: Assign) -> tuple[str, list[Json]]:
    return "assign", [field_json(stmt.target), value_json(stmt.value)]


def _drop(*_: object) -> tuple[str, list[Json]]:
    return "mark_to_drop", [{"type": "header", "value": STANDARD}]


def _truncate(_: _Lowering, stmt: Truncate) -> tuple[str, list[Json]]:
    return "truncate", [hexstr(stmt.length_bytes, 32)]


def _exit(*_: object) -> tuple[str, list[Json]]:
    return "exit", []


_PRIMITIVES: dict[type, Callable[[_Lowering, Any], tuple[str, list[Json]]]] = {
    Assign: _assign, SetValid: _set_valid, Copy: _copy, Shift: _shift, Read: _read, Write: _write,
    Count: _count, Hash: _Lowering._hash, Drop: _drop, Truncate: _truncate, Exit: _exit,
}  # fmt: skip


# -- the parser --


def _state(program: Program, number: int) -> Json:
    state = program.states[number]
    widths = [type_of(key)[0] for key in state.keys]
    stacks = {it.name for it in program.headers if it.stack_size}
    cases = [
        {"type": "default", "value": None, "mask": None, "next_state": case.state or None}
        if not case.values
        else {"type": "hexstr", "next_state": case.state or None, **_selected(case.values, widths)}
        for case in state.cases
    ]
    return {
        "name": state.name, "id": number,
        "parser_ops": [_operation(it, stacks) for it in state.body], "transitions": cases,
        "transition_key": [value_json(key) for key in state.keys],
    }  # fmt: skip


def _selected(values: tuple[tuple[int, int], ...], widths: list[int]) -> Json:
    """Fields one after another, each in whole bytes."""
    value = mask = total = 0
    is_whole = True
    for (one, bits), width in zip(values, widths, strict=True):
        padded = (width + 7) // 8 * 8
        value, mask, total = value << padded | one, mask << padded | bits, total + padded
        is_whole = is_whole and bits == (1 << width) - 1
    return {"value": hexa(value, total), "mask": None if is_whole else hexa(mask, total)}


def _operation(stmt: Stmt, stacks: set[str]) -> Json:
    if isinstance(stmt, Extract):
        kind = "stack" if stmt.header in stacks else "regular"
        return {"op": "extract", "parameters": [{"type": kind, "value": stmt.header}]}
    if isinstance(stmt, Verify):
        error = hexstr(dict(ERRORS)[stmt.error])
        return {"op": "verify", "parameters": [truth_json(stmt.condition), error]}
    if isinstance(stmt, Advance):
        return {"op": "advance", "parameters": [hexstr(8 * stmt.count_bytes, 32)]}
    assert isinstance(stmt, Assign)
    return {"op": "set", "parameters": [field_json(stmt.target), _argument(value_json(stmt.value))]}


# -- all of it --


def _padded(fields: tuple[Field, ...]) -> list[list[Any]]:
    """To whole bytes, which BMv2 wants of metadata, too."""
    found: list[list[Any]] = [[it.name, it.width_bits, it.signed] for it in fields]
    spare = -sum(it.width_bits for it in fields) % 8
    return [*found, ["_padding_0", spare, False]] if spare else found


def _declarations(program: Program) -> Json:
    types: list[Json] = [
        {"name": "meta_t", "fields": _padded(program.meta)},
        {"name": STANDARD, "fields": [[name, width, False] for name, width in STANDARD_FIELDS]},
    ]
    types += [
        {"name": name, "fields": [[it.name, it.width_bits, it.signed] for it in fields]}
        for name, fields in program.types
    ]
    headers: list[Json] = [
        {"name": META, "header_type": "meta_t", "metadata": True, "pi_omit": True},
        {"name": STANDARD, "header_type": STANDARD, "metadata": True, "pi_omit": True},
    ]
    stacks: list[Json] = []
    for it in program.headers:
        names = [f"{it.name}[{at}]" for at in range(it.stack_size)] or [it.name]
        first = len(headers)
        headers += [
            {"name": name, "header_type": it.type, "metadata": False, "pi_omit": True}
            for name in names
        ]
        if it.stack_size:
            stacks.append(
                {"name": it.name, "header_type": it.type, "size": it.stack_size,
                 "header_ids": list(range(first, len(headers)))}
            )  # fmt: skip
    return {
        "header_types": _numbered(types), "headers": _numbered(headers),
        "header_stacks": _numbered(stacks),
    }  # fmt: skip


def _numbered(items: list[Json]) -> list[Json]:
    return [{**item, "id": number} for number, item in enumerate(items)]


def to_json(program: Program) -> str:
    """The text of the JSON."""
    lowering = _Lowering(program)
    pipelines = [
        lowering.pipeline("ingress", 0, program.ingress),
        lowering.pipeline("egress", 1, program.egress),
    ]
    checksums = [
        {"name": f"cksum_{number}", "target": [it.target.header, it.target.field],
         "type": "generic", "calculation": lowering.calculation("csum16", it.inputs),
         "verify": it.verify, "update": it.update, "if_cond": truth_json(it.condition)}
        for number, it in enumerate(program.checksums)
    ]  # fmt: skip
    direct = [
        {"name": f"{it.name}_counter", "is_direct": True, "binding": it.name}
        for it in program.tables
        if it.counted
    ]
    order = [
        name
        for it in program.deparse
        for header in program.headers
        if header.name == it
        for name in ([f"{it}[{at}]" for at in range(header.stack_size)] or [it])
    ]
    first = program.states[0].name if program.states else None
    states = [_state(program, number) for number in range(len(program.states))]
    root = {
        "program": "random.p4", "__meta__": {"version": [2, 23], "compiler": "ina fuzz.programs"},
        **_declarations(program), "header_union_types": [], "header_unions": [],
        "header_union_stacks": [], "field_lists": [], "errors": ERRORS, "enums": [],
        "parsers": [{"name": "parser", "id": 0, "init_state": first, "parse_states": states}],
        "parse_vsets": [],
        "deparsers": [{"name": "deparser", "id": 0, "order": order, "primitives": []}],
        "meter_arrays": [],
        "counter_arrays": _numbered(
            [{"name": name, "size": size, "is_direct": False} for name, size in program.counters]
            + direct
        ),
        "register_arrays": _numbered(
            [{"name": it.name, "size": it.size, "bitwidth": it.width_bits}
             for it in program.registers]
        ),
        "calculations": lowering.calculations, "learn_lists": [], "actions": lowering.actions,
        "pipelines": pipelines, "checksums": _numbered(checksums), "force_arith": [],
        "extern_instances": [],
        "field_aliases": [[f"{name}.{it}", [STANDARD, it]] for name, its in _ALIASES.items()
                          for it in its],
    }  # fmt: skip
    return json.dumps(root)
