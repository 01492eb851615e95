"""A program of a few lines in BMv2's JSON: what a test changes is all that there is."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

PORTS = {"ingress_port": 9, "egress_spec": 9}
"""The least that sends a packet anywhere."""


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def small_program(
    *ingress: Json,
    egress: tuple[Json, ...] = (),
    standard: dict[str, int] = PORTS,
    metadata: dict[str, dict[str, int]] | None = None,
    **more: Any,
) -> Json:
    """Extracts header ``h`` of two bytes, ``a`` and ``b``, runs the primitives, sends it.

    ``standard`` and ``metadata``: fields with their widths, of standard_metadata and of others.
    ``more`` replaces or adds whole sections.
    """
    structs = {"standard_metadata": standard, **(metadata or {})}
    types = [
        {"name": f"{name}_t", "id": i, "fields": list(map(list, fields.items()))}
        for i, (name, fields) in enumerate(structs.items(), 1)
    ]
    headers = [
        {"name": name, "id": i, "header_type": f"{name}_t", "metadata": True}
        for i, name in enumerate(structs, 1)
    ]
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}
    start = {
        "name": "start",
        "id": 0,
        "parser_ops": [extract],
        "transition_key": [],
        "transitions": [{"value": "default", "mask": None, "next_state": None}],
    }
    actions = [
        {"name": name, "id": i, "runtime_data": [], "primitives": list(body)}
        for i, (name, body) in enumerate((("in", ingress), ("out", egress)))
    ]
    pipelines = [
        {
            "name": name,
            "id": i,
            "init_table": "do",
            "tables": [],
            "conditionals": [],
            "action_calls": [{"name": "do", "id": i, "action_id": i, "next_node": None}],
        }
        for i, name in enumerate(("ingress", "egress"))
    ]
    program: Json = {
        "header_types": [{"name": "h_t", "id": 0, "fields": [["a", 8], ["b", 8]]}, *types],
        "headers": [{"name": "h", "id": 0, "header_type": "h_t", "metadata": False}, *headers],
        "header_stacks": [],
        "errors": [],
        "calculations": [],
        "checksums": [],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [start]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["h"]}],
        "actions": actions,
        "pipelines": pipelines,
    }
    return program | more


def back(header: str = "standard_metadata") -> Json:
    """Send the packet to the port it came from."""
    return op("assign", field(header, "egress_spec"), field("standard_metadata", "ingress_port"))
