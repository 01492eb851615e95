"""Named points at which a controller can be made to die, as ``kill -9`` would.

``INA_FAULT=start.stored`` kills the process when it gets to that point, and
``INA_FAULT=start.stored:3`` when it gets there for the third time. For tests of what a successor
finds; without the variable, and an :data:`observer`, :func:`reach` does nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

VARIABLE = "INA_FAULT"

STEPS = (
    # Each has ``NAME.decided``, before the store has the new state, and ``NAME.stored``, when it
    # has it, but the switch may not, and nobody was told.
    "create",
    "join",  # not the last
    "start",  # by the last join
    "run",  # the switch has all of its entries
    "fail",  # to start: the switch refused, or a worker went away
    "withdraw",  # a join, by a worker that went away
    "leave",
    "own_results",  # for a worker that IP multicast does not reach
    "evict",
    "lost",
    "released",  # one of several switches has none of its entries any more
    "removed",  # the switch has none of its entries, or never had
    "epoch",  # the last one issued, after a connection to the switch was made
    "restore",  # of a job that did not run, after a restart
    # Of a change of a job's mapping.
    "remap",  # begins: what it needs is taken
    "remap_ask",  # switches have both mappings
    "remap_decide",  # rank 0 has said from which operation on
    "remap_turn",  # all ranks have all results of those before: the former mapping goes
    "remap_free",  # one of several switches has nothing of it any more
    "remap_open",  # in place: none has
    "remap_off",  # called off
    "remap_over",
)
BETWEEN = (
    # Between two writes to the switch, in their order. Stages: see ``plan.JobPlan``.
    "install.epoch_marked",
    "install.counters_cleared",
    "install.stage_0",
    "install.stage_1",
    "install.stage_2",
    "own_results.group_modified",
    "leave.member_removed",
    "remove.stage_2",
    "remove.stage_1",
    "remove.stage_0",
)
POINTS = tuple(f"{step}.{when}" for step in STEPS for when in ("decided", "stored")) + BETWEEN
"""Every point."""

OF_TREES = (
    "released.decided",
    "released.stored",
    "remap_free.decided",
    "remap_free.stored",
)
"""Those that a job reaches which several switches sum."""


OF_CHANGES = tuple(point for point in POINTS if point.startswith("remap"))
"""Those that a job reaches whose mapping changes."""


observer: Callable[[str], None] | None = None
"""Told of each point, in a program that has controllers in it; what it raises ends their work."""


def reach(point: str) -> None:
    """Says that the controller is at ``point``."""
    if observer is not None:
        observer(point)
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    name, _, times = wanted.partition(":")
    if name != point:
        return
    _reached[point] = _reached.get(point, 0) + 1
    if _reached[point] == int(times or 1):
        os.kill(os.getpid(), signal.SIGKILL)


_reached: dict[str, int] = {}
