"""Changing every block of a program in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Block


def change_blocks(program: Program, change: Callable[[Block], Block]) -> Program:
    """Of both pipelines, and of the actions of tables."""
    used = {action.index for table in program.tables for action in table.actions}
    actions = tuple(
        replace(action, body=change(action.body)) if action.index in used else action
        for action in program.actions
    )
    by_index = {action.index: action for action in actions}
    tables = tuple(
        replace(table, actions=tuple(by_index[action.index] for action in table.actions))
        for table in program.tables
    )
    return replace(
        program,
        actions=actions,
        tables=tables,
        ingress=change(program.ingress),
        egress=change(program.egress),
    )
