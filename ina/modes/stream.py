"""Mode ``stream``: lanes that skip blocks which are zero on all ranks, as OmniReduce's do.

A job's slots are its own, as mode ``pool``'s. The last word of its packets is no value: it says
which block its sender has next, and where all go (docs/fewer_bytes.md, "OmniReduce's stream").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.rows import Place
from ina.p4 import names
from ina.tables.values import Entry


class Stream(Mode):
    """See :class:`Mode` of each."""

    name = names.STREAM
    is_striped = False
    may_change = False
    takes_host_nodes = False
    has_shapes = False
    worker: Mapping[str, Any] = MappingProxyType({"is_stream": True})
    refuses: Mapping[str, str] = MappingProxyType(
        {
            "wire": "values travel in whole words there, as the last one is a block's number",
            "verify": "a sum of checks does not know which of some numbers is the least",
            "recoverable": "results say where lanes go, so ranks cannot go on from their own",
        }
    )
    fills_packets = True
    is_stream = True

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Where slots can keep the least of last words."""
        return program == self.program

    def admission(self, at: Place) -> Entry:
        """Of mode ``pool``, but for the actions, which say that of the job."""
        if at.parent is None:
            return rows.admission(at, names.ADMIT_STREAM_JOB)
        above = at.above(own_bit=1 << at.own_index)
        return rows.admission(at, names.ADMIT_INNER_STREAM_JOB, **above)
