"""Mode ``transparent``: a job's slots are its own, as mode ``pool``'s, and its workers are a ring.

Each SENDs to the next one over RoCEv2 and knows of no switch, which puts sums in place of that.

The switch's side is there: the program, the reference, the cases. No controller writes its rows
yet, and no host sends such packets.
"""

from __future__ import annotations

from ina.modes.mode import Mode
from ina.modes.roce import ROCE_DROP_REASONS
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.p4.catalogue import Capabilities
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest


class Transparent(Mode):
    """See :class:`Mode` of each."""

    name = names.TRANSPARENT
    framing = "ring"
    drop_reasons = ROCE_DROP_REASONS
    has_hosts = False
    has_trees = False
    is_striped = False
    may_change = False
    takes_host_nodes = False

    def is_written_to(self, can: Capabilities) -> bool:
        """Not yet: rows by flow are nobody's but the cases'."""
        return False

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Where flows are taken apart."""
        return program == self.program

    def forest(self, asking: Asking, over: Forest, site: Site) -> Forest:
        """One switch: another below it would have to acknowledge what is summed above."""
        switches = [node.switch for tree in over for node in tree]
        if len(switches) > 1:
            raise JobRequestError(
                f"job {asking.job!r}: mode {self.name!r} sums at one switch that all workers are"
                f" behind, and these want {len(switches)}: {', '.join(switches)}"
            )
        return over
