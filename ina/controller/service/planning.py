"""What was decided of jobs' slots, and what a job would get now: its slots by the memory policy,
its trees by the placement, what its steps would take, and whom it would slow down; for operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from itertools import pairwise

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.job import JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.memory.demand import StepModel
from ina.controller.placing.router import Router, View
from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import Judgement
from ina.controller.routing.loads import Loads, no_loads
from ina.controller.service.endpoints import address_of
from ina.controller.slots.decisions import Decision
from ina.controller.slots.memory import Memory
from ina.protocol.peer import Peer
from ina.protocol.spec import VALUE_BYTES
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


def list_decisions(memory: Memory, job: str) -> pb2.ListDecisionsReply:
    """The last ones about a job; empty: about all."""
    return pb2.ListDecisionsReply(
        policy=memory.policy.name,
        decisions=[show_decision(it) for it in memory.decisions.of(job)],
        forgotten=memory.decisions.forgotten,
    )


def show_decision(decision: Decision) -> pb2.Decision:
    """As operators see it."""
    return pb2.Decision(
        unix_s=decision.unix_s,
        job=decision.job,
        what=decision.what,
        slots_before=decision.slots_before,
        slots=decision.slots,
        reason=decision.reason,
    )


def plan_job(
    coordinator: Coordinator, memory: Memory, request: pb2.PlanJobRequest
) -> pb2.PlanJobReply:
    """What a job would get now.

    Raises :class:`JobRequestError`, :class:`UnknownJobError` (``like``), :class:`TenantError`.
    """
    name = request.name or "planned"
    if request.hosts and request.world_size not in (0, len(request.hosts)):
        raise JobRequestError(
            f"job {name!r}: {request.world_size} workers on {len(request.hosts)} hosts: want a host"
            " for each rank"
        )
    request.world_size = request.world_size or len(request.hosts)
    if not request.world_size:
        raise JobRequestError(f"job {name!r}: 0 workers: a job has at least one")
    registry = coordinator.registry
    if request.placement and not isinstance(registry.placement, Router):
        raise JobRequestError(
            f"job {name!r}: placement {request.placement!r}: the controller's switches are no"
            " fabric: its file has no [[link]]"
        )
    tenant = registry.admission.tenant(name, request.tenant)
    steps = _steps(coordinator, memory, request)
    asked = JobSpec(
        name,
        request.world_size,
        request.slots,
        tenant,
        registry.admission.priority(tenant, request.priority),
        deadline_unix_s=request.deadline_unix_s,
        steps=request.steps,
    )
    planned = memory.sizing.plan(asked, steps)
    reply = pb2.PlanJobReply(policy=memory.policy.name, slots=planned.slots)
    reply.refusal = memory.sizing.refusal(asked, planned.slots)
    if reply.refusal:
        reply.slots = 0
    for other, (before, slots) in sorted(planned.others.items()):
        what = "grow" if slots > before else "shrink"
        reply.others.add(job=other, what=what, slots_before=before, slots=slots)
    if steps is not None:
        useful = planned.demand.useful
        reply.useful_slots, reply.step_alone_s = useful, steps.step_s(useful)
        reply.step_s = steps.step_s(reply.slots) if reply.slots else 0.0
        reply.step_without_s = _ring_s(steps, request.world_size)
    if request.hosts and isinstance(registry.placement, Router):
        route = (name, request.hosts, request.placement, steps)
        reply.route.CopyFrom(plan_route(registry.placement, *route))
    return reply


def _steps(
    coordinator: Coordinator, memory: Memory, request: pb2.PlanJobRequest
) -> StepModel | None:
    """None: nothing is known of its steps."""
    if request.like:
        like = coordinator.registry.get(request.like)
        needs = memory.sizing.needs(like)
        return needs.steps(like.slots) if needs.is_known else None
    if not request.HasField("step"):
        return None
    said = request.step
    numbers = (said.compute_s, said.overlap_s, said.bytes, said.round_trip_s, said.line_bytes_per_s)
    if min(numbers) < 0 or not said.bytes > 0 or not said.round_trip_s > 0:
        raise JobRequestError(
            f"job {request.name!r}: a step needs bytes and a round trip above 0, and no time below"
        )
    values = next(iter(coordinator.registry.switches.values())).values
    model = StepModel(
        said.compute_s, said.overlap_s, said.bytes, values * VALUE_BYTES / said.round_trip_s
    )
    return model.with_line(said.line_bytes_per_s)


def _ring_s(steps: StepModel, workers: int) -> float:
    """A step with Gloo's ring, which sends 2 (n - 1) / n times the values; 0: the line's rate is
    not known."""
    if steps.line_bytes_per_s == float("inf"):
        return 0.0
    sums_s = 2 * (workers - 1) / workers * steps.bytes / steps.line_bytes_per_s
    return steps.compute_s + max(0.0, sums_s - steps.overlap_s)
