"""What a memory policy decided and would decide, for operators."""

from __future__ import annotations

from ina.controller.job import JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.memory.demand import StepModel
from ina.controller.placing.router import Router
from ina.controller.service.route_plan import plan_route
from ina.controller.slots.decisions import Decision
from ina.controller.slots.memory import Memory
from ina.protocol.spec import VALUE_BYTES
from ina.rpc import controller_pb2 as pb2
from ina.trees.errors import JobRequestError


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
