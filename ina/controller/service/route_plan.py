"""Where a job would be summed, what its steps would take, and whom it would slow down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from itertools import pairwise

import numpy as np

from ina.controller.memory.demand import StepModel
from ina.controller.placing.router import Router, View
from ina.controller.routing.demand import Demand
from ina.controller.routing.errors import RoutingError
from ina.controller.routing.judge import Judgement
from ina.controller.routing.loads import Loads, no_loads
from ina.controller.service.endpoints import address_of
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError


def plan_route(
    router: Router, name: str, hosts: Sequence[str], placement: str, steps: StepModel | None
) -> pb2.RoutePlan:
    """Nothing is reserved. Raises :class:`JobRequestError`: a host is behind no switch, there is no
    such policy, or no tree."""
    where = f"job {name!r}"
    addresses = [address_of(where, text) for text in hosts]
    endpoints = {rank: _endpoint(router, address) for rank, address in enumerate(addresses)}
    placement = placement or router.policy_of(name)
    avoided = router.avoided()
    try:
        view = router.view(avoided, {name: endpoints}, {name: steps})
        stripes = router.planned(view, name, placement)
    except RoutingError as error:
        raise JobRequestError(str(error)) from None
    others = {job: it for job, it in view.by_job().items() if job != name}
    own = view.loads_of(name, stripes)
    demand = view.demands[name]
    with_it = _judged(view, {**others, name: own})
    before = _judged(view, others).job_s
    without = _judged(view, {**others, name: _ring(view, demand)})
    return pb2.RoutePlan(
        placement=placement,
        trees=[
            pb2.PlannedTree(
                share=it.share, switches=[view.network.names[node] for node in it.tree.nodes]
            )
            for it in stripes
        ],
        step_s=demand.training_s(with_it.job_s[name]),
        step_without_s=demand.training_s(without.job_s[name]),
        step_alone_s=demand.training_s(_judged(view, {name: own}).job_s[name]),
        limit=_limit(view, with_it, own),
        slowed=[
            pb2.SlowedJob(name=job, before_s=was_s, after_s=now_s)
            for job, seconds in before.items()
            if (now_s := view.demands[job].training_s(with_it.job_s[job]))
            > (was_s := view.demands[job].training_s(seconds)) * (1 + 1e-9)
        ],
        supposed=steps is None,
    )


def _endpoint(router: Router, address: IPv4Address) -> Endpoint:
    switch = router.switch_of([address])
    return Endpoint(Peer(address, 0), router.port_to(switch, address), switch=switch)


def _judged(view: View, by_job: Mapping[str, Loads]) -> Judgement:
    return Judgement(view.network, tuple(view.demands[job] for job in by_job), by_job)


def _ring(view: View, demand: Demand) -> Loads:
    """Of an all-reduce in a ring in the order of ranks: each sends 2 (n - 1) / n times the bytes to
    the next one (P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of
    workstations, JPDC 2009, section 3)."""
    found, count = no_loads(view.network), len(demand)
    size = 2 * (count - 1) / count * demand.step_bytes
    np.add.at(found.hosts, np.array(demand.hosts, dtype=np.int64), size)
    places = demand.places(view.network).tolist()
    names = view.network.names
    for one, other in zip(places, [*places[1:], *places[:1]], strict=True):
        path = view.fabric.path(names[one], names[other])
        for a, b in pairwise(path):
            cable = view.network.cable_between.get((view.network.place(a), view.network.place(b)))
            if cable is not None:
                found.cables[cable] += size / 2  # a ring passes each cable as often either way
    return found


def _limit(view: View, found: Judgement, own: Loads) -> str:
    """Of what the job needs, that which takes the longest for all that are on it."""
    network = view.network
    seconds = found.loads.seconds(network)
    needs = (own.cables > 0, own.places > 0, own.hosts > 0)
    best = [
        float(np.where(needed, of, 0.0).max(initial=0.0))
        for of, needed in zip(seconds, needs, strict=True)
    ]
    kind = best.index(max(best))
    at = int(np.where(needs[kind], seconds[kind], 0.0).argmax())
    if kind == 0:
        return "-".join(network.names[end] for end in network.ends[at])
    return network.names[at] if kind == 1 else network.host_names[at]
