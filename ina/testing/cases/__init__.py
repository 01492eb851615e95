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
    sets,
    shared,
    slot_rows,
    stream,
    wanted,
)

TOPICS = (
    *(slot_rows, merging, admission, malformed, multicast, shared, levels, forwarding, counters),
    *(claims, flushes, sets, wanted, stream),
)
"""Those of one mode's program alone have its name as ``MODE``."""


@functools.cache
def all_cases(values: int, mode: str = names.DEFAULT_MODE) -> tuple[Case, ...]:
    """Every case for a mode's build with ``values`` values a packet; their names are unique."""
    topics = [topic for topic in TOPICS if getattr(topic, "MODE", mode) == mode]
    found = [case for topic in topics for case in topic.cases(values)]
    if not modes.of(mode).gathers & Flag.WANTED:
        found += wanted.cases_of_others(values)
    return tuple(found)
