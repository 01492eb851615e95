"""Mode ``roce``: a job's slots are its own, as mode ``pool``'s, and its packets RoCEv2's SENDs.

The switch's side is there: the program, the reference, the cases. No controller writes its rows
yet, and no host sends such packets.
"""

from __future__ import annotations

from ina.modes.mode import Mode
from ina.p4 import names
from ina.p4.catalogue import Capabilities


class Roce(Mode):
    """See :class:`Mode` of each."""

    name = names.ROCE
    framing = "rocev2"
    has_hosts = False
    may_change = False
    takes_host_nodes = False

    def is_written_to(self, can: Capabilities) -> bool:
        """Not yet: rows by queue pair are nobody's but the cases'."""
        return False

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Where packets are taken out of SENDs."""
        return program == self.program
