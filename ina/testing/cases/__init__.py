"""The conformance cases. Each says in one sentence what every data plane must do."""

from __future__ import annotations

import functools

from ina import modes
from ina.p4 import names
from ina.protocol.spec import Flag
from ina.testing.case import Case
from ina.testing.cases import (
    admission,
    claims,
    counters,
    flushes,
    forwarding,
    levels,
    malformed,
    merging,
    multicast,
    roce,
    sets,
    shaped_claims,
    shapes,
    shared,
    slot_rows,
    stream,
    transparent,
    wanted,
)
from ina.testing.framing import FRAMINGS
from ina.testing.wrapping import WRAPPINGS, said_of

TOPICS = (
    *(slot_rows, merging, admission, malformed, multicast, shared, levels, forwarding, counters),
    *(shapes, claims, shaped_claims, flushes, sets, wanted, stream, roce, transparent),
)
"""Those of one mode's program alone have its name as ``MODE``."""
OF_TREES = (levels, shared)
"""Switches above one another, and results that workers share."""


@functools.cache
def all_cases(values: int, mode: str = names.DEFAULT_MODE) -> tuple[Case, ...]:
    """Every case for a mode's build with ``values`` values a packet; their names are unique."""
    framing = modes.of(mode).framing
    wrapping, has_shapes = WRAPPINGS[framing], FRAMINGS[framing].has_shapes
    topics = [topic for topic in TOPICS if getattr(topic, "MODE", mode) == mode]
    own = [case for topic in topics if hasattr(topic, "MODE") for case in topic.cases(values)]
    of_all = [
        case
        for topic in topics
        if not hasattr(topic, "MODE")
        and (modes.of(mode).has_trees or topic not in OF_TREES)
        and (has_shapes or topic is not shapes)
        for case in topic.cases(values)
    ]
    if not modes.of(mode).gathers & Flag.WANTED:
        of_all += wanted.cases_of_others(values)
    return (*(said_of(case, wrapping) for case in of_all if wrapping.says(case)), *own)
