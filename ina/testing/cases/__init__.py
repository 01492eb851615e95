"""The conformance cases. Each says in one sentence what every data plane must do."""

from __future__ import annotations

import functools

from ina.p4 import names
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
    wanted,
)

TOPICS = (slot_rows, merging, admission, malformed, multicast, shared, levels, forwarding, counters)
SHARED_TOPICS = (claims, flushes, sets, wanted)
"""Of the program of mode shared, besides."""


@functools.cache
def all_cases(values: int, mode: str = names.PROGRAM) -> tuple[Case, ...]:
    """Every case for a mode's build with ``values`` values a packet; their names are unique."""
    topics = (*TOPICS, *SHARED_TOPICS) if mode == names.SHARED else TOPICS
    found = [case for topic in topics for case in topic.cases(values)]
    if mode == names.PROGRAM:
        found += wanted.cases_of_pool(values)
    return tuple(found)
