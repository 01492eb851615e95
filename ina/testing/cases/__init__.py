"""The conformance cases. Each says in one sentence what every data plane must do."""

from __future__ import annotations

import functools

from ina.testing.case import Case
from ina.testing.cases import (
    admission,
    counters,
    forwarding,
    levels,
    malformed,
    merging,
    multicast,
    shared,
    slot_rows,
)

TOPICS = (slot_rows, merging, admission, malformed, multicast, shared, levels, forwarding, counters)


@functools.cache
def all_cases(values: int) -> tuple[Case, ...]:
    """Every case for the build with ``values`` values a packet; their names are unique."""
    return tuple(case for topic in TOPICS for case in topic.cases(values))
