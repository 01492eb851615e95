"""What a worker is told of its job's mapping: where it sends, and what its host's node needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ina import modes
from ina.controller.config import SwitchConfig
from ina.controller.job import Job
from ina.controller.jobs.changes import Told
from ina.controller.switches.link import data_address
from ina.controller.switches.plan import host_entities
from ina.modes import Mode
from ina.protocol.ring import Ring
from ina.rpc import controller_pb2 as pb2
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.mapping import Part


class Tickets:
    """For the workers of a controller."""

    def __init__(
        self, switches: Mapping[str, SwitchConfig], congestion: Callable[[Job], pb2.Congestion]
    ) -> None:
        """``switches``: by name. ``congestion``: what a job's workers shall use."""
        self._switches = switches
        self._addresses = {name: data_address(switch) for name, switch in switches.items()}
        self._congestion = congestion

    def trees(self, job: Job, rank: int, by: JobMapping | None = None) -> list[pb2.Tree]:
        """As the worker sees them; ``by``: another mapping than the job has."""
        by = by or job.mapping
        mode = modes.of(by.mode)
        trees = [self._tree(part, rank, mode) for part in by.parts]
        for tree, part in zip(trees, by.parts, strict=True):
            ring = mode.ring(part, job.members, rank)
            if ring is not None:
                tree.ring.CopyFrom(_said(ring))
        return trees

    def _tree(self, part: Part, rank: int, mode: Mode) -> pb2.Tree:
        first = part.tree.first_node(rank)
        if first.host is None:
            host, udp_port = self._addresses[first.switch].place
        else:
            host, udp_port = first.host.peer.place
        return pb2.Tree(
            job=part.number,
            host=host,
            udp_port=udp_port,
            worker=first.index_of_rank(rank),
            path=part.tree.path(rank),
            expected_bitmap=part.tree.full_bitmap,
            first_lane=part.lanes.start,
            lanes=len(part.lanes),
            node=first.switch if first.host is None else first.host.text,
            queue_pair=mode.queue_pair(part.number, first.index_of_rank(rank)),
            owners=mode.owners(part.tree),
        )

    def node_entities(self, job: Job, rank: int, beside: JobMapping | None = None) -> list[bytes]:
        """For the rank that runs its host's node; ``beside``: of a mapping beside the job's."""
        host = (beside or job.mapping).forest.trees[0].first_node(rank).host
        if host is None or host.rank != rank:
            return []
        return host_entities(job, host, self._addresses, self._values(job), beside=beside)

    def aggregator_entities(
        self, job: Job, rank: int, beside: JobMapping | None = None
    ) -> list[bytes]:
        """For rank 0, where its process makes the job's results; ``beside``: as above."""
        runs = (beside or job.mapping).forest.root.host
        if runs is None or runs.rank != rank:
            return []
        return host_entities(job, runs, self._addresses, self._values(job), beside=beside)

    def _values(self, job: Job) -> int:
        return self._switches[job.switch].values

    def mapping(self, job: Job, rank: int, told: Told) -> pb2.Mapping:
        """The one that its job changes to, or has changed to."""
        by = told.mapping
        is_beside = job.change is not None and by is job.change.other and not job.missing()
        return pb2.Mapping(
            epoch=by.epoch,
            slots=by.slots,
            window=by.window,
            mode=by.mode,
            congestion=self._congestion(job),
            trees=self.trees(job, rank, by),
            first_operation=told.terms.first_operation,
            waits=told.terms.waits,
            node_entities=self.node_entities(job, rank, by) if is_beside else [],
            aggregator_entities=self.aggregator_entities(job, rank, by) if is_beside else [],
        )


def _said(ring: Ring) -> pb2.Ring:
    return pb2.Ring(
        address=str(ring.own),
        next=str(ring.next),
        previous=str(ring.previous),
        next_pairs=ring.next_pairs,
        previous_pairs=ring.previous_pairs,
        first_psn=ring.first_psn,
    )
