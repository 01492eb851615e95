"""Mode ``shared``: an aggregator above a job's switches, and slots shared with other jobs.

A job has slots of its own at its aggregator alone, where all its sums are made whole; on the
switches below it may claim slots of an arc, each for as long as a sum takes (docs/shared_slots.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.patience import Patience
from ina.modes.rows import Place
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.p4.catalogue import Capabilities
from ina.protocol.slot_model import STICKY_FLAGS
from ina.tables.values import Entry
from ina.trees.aggregators import Above
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.slots import lanes_of
from ina.trees.tree import Node, Tree, below_itself, with_aggregator, without_aggregator


class Shared(Mode):
    """See :class:`Mode` of each."""

    name = names.SHARED
    is_sized = False
    is_striped = False
    needs_aggregator = True
    fills_packets = True
    switch_keys = ("shared_slots", "slot_age_us", "aggregator")
    gathers = STICKY_FLAGS
    shared_admissions = (names.ADMIT_SHARED_JOB,)

    def slots_shared(self, asked: int) -> int:
        """Half of the switch's, where it does not say."""
        return asked or names.SLOTS_TOTAL // 2

    def is_written_to(self, can: Capabilities) -> bool:
        """Not on chips: there are no owners to be told, and on Tofino 1 no lanes."""
        return can.evicts and can.has_lanes

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Where there are some."""
        return shares_slots

    def program_at(self, node: Node) -> str:
        """Its own at an aggregator alone."""
        return self.program if node.parent is None else super().program_at(node)

    def forest(self, asking: Asking, over: Forest, site: Site) -> Forest:
        """The first, below each of its aggregators; without any while its own is not known yet."""
        tree = over.trees[0]
        if site.makes_results(tree.root.switch):
            return forest_of(below_itself(tree))
        above = self._above(asking, tree.root.switch, site)
        if not above:
            return forest_of(Tree(tuple(replace(it, is_shared=True) for it in tree)))
        try:
            return forest_of(*(with_aggregator(tree, it.node, it.port) for it in above))
        except JobRequestError as error:
            raise JobRequestError(f"job {asking.job!r}: {error}") from None

    def bare(self, over: Forest, site: Site) -> Forest:
        """Without aggregators above its switches."""
        if not over.is_shared:
            return over
        root = over.root
        is_above = root.host is not None or not site.is_switch(root.switch)
        return forest_of(without_aggregator(over.trees[0], is_above=is_above))

    def may_top(self, asking: Asking, switch: str, site: Site) -> bool:
        """Whether it is, or reaches, an aggregator that can be used."""
        if not site.shares_slots(switch):
            return False
        if site.makes_results(switch):
            return True
        if site.is_embedded:
            return asking.runs is None or site.leads_to(switch, asking.runs.peer.address)
        above = site.above(switch)
        return above is None or any(_is_usable(it, site) for it in above)

    def levels_above(self, switch: str, site: Site) -> int:
        """Its aggregator's, where it is none itself."""
        return int(not site.makes_results(switch))

    def _above(self, asking: Asking, top: str, site: Site) -> Sequence[Above]:
        """The aggregators that its lanes are dealt to; none: it is not known yet."""
        wants = f"job {asking.job!r}: mode {self.name!r} wants an aggregator"
        if site.is_embedded:
            runs = asking.runs
            if runs is not None:
                port = asking.port_to(top, runs.peer.address)
                return [Above(Node(runs.name, (), (top,), (runs.uplink_port,), host=runs), port)]
            if not asking.is_whole:
                return []
            raise JobRequestError(
                f"{wants}: the controller's file lists none, and rank 0 runs none"
            )
        found = site.above(top) or site.above_at_all(top)
        if not found:
            raise JobRequestError(f"{wants}, and none is to be reached from switch {top!r}")
        had = [it for it in found if it.node.switch in asking.had and site.is_up(it.node.switch)]
        usable = had or [it for it in found if _is_usable(it, site)] or found
        lanes = asking.slots // 2 or site.most_aggregators
        count = min(len(usable), site.most_aggregators, lanes)
        return usable[: 1 << (count.bit_length() - 1)]  # lanes are a power of two

    def admission(self, at: Place) -> Entry:
        """Below its aggregator a job claims slots of an arc."""
        if not at.node.is_shared:
            return super().admission(at)
        patience = Patience.of(at.priority, at.age_us)
        return rows.admission(
            at,
            names.ADMIT_SHARED_JOB,
            **at.above(),
            lane_mask=lanes_of(at.memory.slots) - 1,
            claimable=at.memory.reserved,
            age_us=patience.age_us,
            lead_us=patience.lead_us,
        )

    def member(self, at: Place, index: int) -> Entry:
        """Each packet of a switch that shares slots holds those that it names; that of a worker,
        or of a node on a host, its one bit alone."""
        below = at.node.nodes[max(0, index - len(at.node.ranks)) :]
        if index >= len(at.node.ranks) and at.part.tree[below[0]].is_shared:
            return rows.member(at, index, names.ADMIT_SET, worker_bits=at.bits[index])
        return super().member(at, index)

    def further(self, at: Place) -> tuple[Entry, ...]:
        """Where a sum of the job's goes that another job puts out of a slot that they share.

        Of several trees the switch knows no owners, which it does by their epochs, alike in all: a
        sum that loses its slot to another job is lost, and sent again.
        """
        if not at.node.is_shared or at.parent is None or not at.is_alone:
            return ()
        params = (
            ("job", at.part.number),
            ("job_index", at.part.number),
            ("full_bitmap", sum(at.bits)),
            ("parent_port", at.node.parent_port),
            ("own_worker", at.own_index),
            ("own_level", at.part.tree.level(at.node)),
        )
        return (Entry(names.OWNERS, (("epoch", at.part.epoch),), names.OWNER_IS, params),)


def _is_usable(it: Above, site: Site) -> bool:
    return site.is_reached(it.node.switch) and site.is_up(it.node.switch)
