"""Walking over IR trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Block


@cache
def child_names(node_type: Any) -> tuple[str, ...]:
    """Names of a node's fields that can hold nodes."""
    return tuple(f.name for f in fields(node_type) if f.name != "source")


def walk(node: Any) -> Iterator[Any]:
    """The node and everything below it, in order. Tables that are applied are not entered."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif is_dataclass(node):
        yield node
        for name in child_names(node.__class__):
            child = getattr(node, name)
            if isinstance(child, tuple) or is_dataclass(child):
                yield from walk(child)


def pipeline_parts(program: Program, pipeline: Block) -> list[Any]:
    """A pipeline with the keys and action bodies of the tables that it applies."""
    parts: list[Any] = [pipeline]
    seen = set()
    for node in walk(pipeline):
        if isinstance(node, Apply) and node.table not in seen:
            seen.add(node.table)
            table = program.table(node.table)
            assert table is not None
            parts.extend(key.value for key in table.keys)
            parts.extend(action.body for action in program.possible_actions(table))
    return parts


def all_parts(program: Program) -> list[Any]:
    """Everything in a program that refers to fields."""
    return [
        *(state.body for state in program.states.values()),
        *(state.keys for state in program.states.values()),
        *pipeline_parts(program, program.ingress),
        *pipeline_parts(program, program.egress),
        *program.checksums,
    ]
