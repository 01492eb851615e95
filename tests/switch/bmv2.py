"""Writes BMv2 JSON of small v1model programs, as p4c would, in a few lines of Python.

A block is a list of statements: primitives (:func:`assign` ...), lists of them, :func:`if_`,
:func:`apply`. A field is "header.field".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Fields = Sequence[tuple[Any, ...]]
"""(name, bits), or (name, bits, True) if it is signed."""

STANDARD: Fields = [
    *(("ingress_port", 9), ("egress_spec", 9), ("egress_port", 9), ("instance_type", 32)),
    *(("packet_length", 32), ("mcast_grp", 16), ("egress_rid", 16), ("checksum_error", 1)),
    *(("parser_error", 32), ("_padding", 3)),
]


@dataclass(frozen=True)
class If:
    condition: Json
    then: Sequence[Any]
    otherwise: Sequence[Any]


@dataclass(frozen=True)
class Apply:
    table: str
    hit: Sequence[Any]
    miss: Sequence[Any]


def ref(name: str) -> Json:
    """A field."""
    return {"type": "field", "value": list(name.rsplit(".", 1))}


def const(value: int) -> Json:
    return {"type": "hexstr", "value": f"{'-' if value < 0 else ''}{abs(value):#x}"}


def param(index: int) -> Json:
    return {"type": "runtime_data", "value": index}


def value(operand: Any) -> Json:
    """A field by name, a constant, or JSON as it is."""
    if isinstance(operand, str):
        return ref(operand)
    return const(operand) if isinstance(operand, int) else operand


def op(name: str, left: Any, right: Any) -> Json:
    left = None if left is None else value(left)
    return {"type": "expression", "value": {"op": name, "left": left, "right": value(right)}}


def valid(header: str) -> Json:
    return op("d2b", None, ref(f"{header}.$valid$"))


def header(name: str) -> Json:
    return {"type": "header", "value": name}


def primitive(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def assign(target: str, what: Any) -> Json:
    return primitive("assign", ref(target), value(what))


def set_valid(name: str) -> Json:
    return primitive("add_header", header(name))


def set_invalid(name: str) -> Json:
    return primitive("remove_header", header(name))


def copy(target: str, source: str) -> Json:
    return primitive("assign_header", header(target), header(source))


def register_read(target: str, register: str, index: Any) -> Json:
    array = {"type": "register_array", "value": register}
    return primitive("register_read", ref(target), array, value(index))


def register_write(register: str, index: Any, what: Any) -> Json:
    array = {"type": "register_array", "value": register}
    return primitive("register_write", array, value(index), value(what))


def send(port: int) -> Json:
    return assign("standard_metadata.egress_spec", port)


def if_(condition: Json, then: Sequence[Any], otherwise: Sequence[Any] = ()) -> If:
    return If(condition, then, otherwise)


def apply(table: str, hit: Sequence[Any] = (), miss: Sequence[Any] = ()) -> Apply:
    return Apply(table, hit, miss)


def inside(condition: Json, primitives: Sequence[Json], at: int) -> list[Json]:
    """An if within an action, whose first primitive is number ``at`` of it."""
    end = at + 1 + len(primitives)
    return [primitive("_jump_if_zero", condition, const(end)), *primitives]


def state(
    name: str,
    extracts: Sequence[str],
    select: str = "",
    cases: Mapping[int, str | None] | None = None,
    default: str | None = None,
) -> Json:
    """A parser state; by value of the field, the next one (None: accept)."""
    ways = [
        {"type": "hexstr", "value": f"{number:#x}", "mask": None, "next_state": to}
        for number, to in (cases or {}).items()
    ]
    ways.append({"type": "default", "value": None, "mask": None, "next_state": default})
    return {
        "name": name,
        "parser_ops": [
            {"op": "extract", "parameters": [{"type": "regular", "value": each}]}
            for each in extracts
        ],
        "transition_key": [ref(select)] if select else [],
        "transitions": ways,
    }


@dataclass
class Builder:
    """A program: fill it, then :meth:`json`."""

    headers: Mapping[str, Fields]
    """By instance. Those of equal fields are of one type."""
    parser: Sequence[Json]
    ingress: Sequence[Any]
    egress: Sequence[Any] = ()
    metadata: Fields = ()
    actions: Mapping[str, tuple[Sequence[int], Sequence[Json]]] = field(default_factory=dict)
    """By name: bits of the parameters, primitives."""
    tables: Mapping[str, tuple[Sequence[str], Sequence[str]]] = field(default_factory=dict)
    """By name: fields of the (exact) key, actions. The default is NoAction, which is added."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """By table: another default action, which its list of actions does not have."""
    registers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By name: elements, bits of each."""
    checksums: Sequence[Json] = ()
    calculations: Sequence[Json] = ()
    order: Sequence[str] | None = None
    """Of the deparser, if it is not that of ``headers``."""
    _calls: list[Json] = field(default_factory=list)

    def json(self) -> str:
        """The text."""
        self._calls = [self._action(n, *self.actions[n]) for n in self.actions]
        self._calls.append(self._action("NoAction", (), ()))
        types: dict[tuple[Any, ...], str] = {}
        for fields in self.headers.values():
            types.setdefault(tuple(fields), f"type_{len(types)}")
        own: list[tuple[str, Fields, bool]] = [
            ("standard_metadata", STANDARD, True),
            ("meta", [*self.metadata, ("_unused", 8)], True),
        ]
        instances = [(name, name, True) for name, _, _ in own]
        instances += [(name, types[tuple(fields)], False) for name, fields in self.headers.items()]
        declared = [(name, fields) for name, fields, _ in own]
        declared += [(name, fields) for fields, name in types.items()]
        return json.dumps(
            {
                "program": "built.p4",
                "header_types": [
                    {"name": name, "id": number, "fields": [list(each) for each in fields]}
                    for number, (name, fields) in enumerate(declared)
                ],
                "headers": [
                    {"name": name, "id": number, "header_type": kind, "metadata": metadata}
                    for number, (name, kind, metadata) in enumerate(instances)
                ],
                "header_stacks": [],
                "errors": [["NoError", 0], ["PacketTooShort", 1], ["NoMatch", 2]],
                "parsers": [
                    {"init_state": self.parser[0]["name"], "parse_states": list(self.parser)}
                ],
                "deparsers": [
                    {"order": list(self.order or self.headers), "primitives": []},
                ],
                "register_arrays": [
                    {"name": name, "size": size, "bitwidth": bits}
                    for name, (size, bits) in self.registers.items()
                ],
                "calculations": list(self.calculations),
                "checksums": list(self.checksums),
                "pipelines": [
                    self._pipeline("ingress", self.ingress),
                    self._pipeline("egress", self.egress),
                ],
                "actions": self._calls,
            }
        )

    def _action(self, name: str, bits: Sequence[int], body: Sequence[Json]) -> Json:
        return {
            "name": name,
            "id": len(self._calls) if name == "NoAction" else list(self.actions).index(name),
            "runtime_data": [
                {"name": f"p{number}", "bitwidth": each} for number, each in enumerate(bits)
            ],
            "primitives": list(body),
        }

    def _pipeline(self, name: str, block: Sequence[Any]) -> Json:
        nodes: Json = {"name": name, "tables": [], "conditionals": [], "action_calls": []}
        nodes["init_table"] = self._block(nodes, block, None)
        return nodes

    def _block(self, nodes: Json, block: Sequence[Any], after: str | None) -> str | None:
        """The name of its first node."""
        for stmt in reversed(block):
            number = sum(len(nodes[kind]) for kind in ("conditionals", "action_calls"))
            name = f"{nodes['name']}_{number}"
            if isinstance(stmt, If):
                node: Json = {"name": name, "expression": stmt.condition}
                nodes["conditionals"].append(node)
                node["true_next"] = self._block(nodes, stmt.then, after)
                node["false_next"] = self._block(nodes, stmt.otherwise, after)
            elif isinstance(stmt, Apply):
                name = stmt.table
                hit, miss = (self._block(nodes, way, after) for way in (stmt.hit, stmt.miss))
                nodes["tables"].append(self._table(name, hit, miss))
            else:
                body = stmt if isinstance(stmt, list) else [stmt]  # one action of several
                self._calls.append({**self._action("NoAction", (), body), "name": name})
                call = {"name": name, "action_id": len(self._calls) - 1, "next_node": after}
                nodes["action_calls"].append(call)
            after = name
        return after

    def _table(self, name: str, hit: str | None, miss: str | None) -> Json:
        keys, actions = self.tables[name]
        names, last = list(self.actions), len(self.actions)
        default = names.index(self.defaults[name]) if name in self.defaults else last
        return {
            "name": name,
            "key": [{"match_type": "exact", "target": key.rsplit(".", 1)} for key in keys],
            "match_type": "exact",
            "type": "simple",
            "max_size": 64,
            "action_ids": [*map(names.index, actions), *([] if name in self.defaults else [last])],
            "next_tables": {"__HIT__": hit, "__MISS__": miss},
            "default_entry": {"action_id": default, "action_data": []},
        }
