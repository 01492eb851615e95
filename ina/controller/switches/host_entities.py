"""What the node on a host of workers needs for its job, as P4Runtime entities for its own rank.

No controller reaches it: the rank that runs it inserts them, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping

from ina import modes
from ina.controller.job import Job
from ina.controller.switches.plan import own_address, plan_job
from ina.p4 import compiled
from ina.protocol.addresses import SHM_SWITCH
from ina.protocol.peer import Peer
from ina.tables.entities import entities_of
from ina.tables.values import Item
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.tree import HostNode


def host_entities(
    job: Job,
    node: HostNode,
    addresses: Mapping[str, Peer],
    values: int,
    *,
    beside: JobMapping | None = None,
) -> list[bytes]:
    """Serialised ``p4.v1.Entity``, for the v1model build that it runs with so many values a packet.

    ``addresses``: of the job's switches, by name. ``beside``: only what this mapping needs beside
    the one that the job has.
    """
    plan = plan_job(job, node.name, addresses, by=beside)
    items: list[Item] = [own_address(int(address)) for address in (node.peer.address, SHM_SWITCH)]
    if beside is not None:
        items = []
        if job.forest == beside.forest:
            plan = plan.beside(plan_job(job, node.name, addresses))
    items += plan.items
    by = beside or job.mapping
    program = modes.of(by.mode).program_at(by.forest.trees[0][node.name])
    entities = entities_of(compiled(values, program).p4info)
    return [entities.encode(item).SerializeToString() for item in items]
