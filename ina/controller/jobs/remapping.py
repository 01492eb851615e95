"""What a running job can change to, and what it takes for that: slots, an epoch, a number. Pure."""

from __future__ import annotations

from ina import modes
from ina.controller.change import Change, Step
from ina.controller.errors import JobConflictError, NoRoomError
from ina.controller.job import Job, JobState
from ina.controller.jobs.placement import check_forest, check_pipes, window
from ina.controller.jobs.registry import Registry
from ina.controller.memory.allocators import check_even
from ina.modes.rows import low_epoch
from ina.p4 import names
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.host_nodes import with_nodes_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange


def begin(
    registry: Registry, job: Job, slots: int, forest: Forest | None, why: str, *, mode: str = ""
) -> Change:
    """Takes what a running job needs to have ``slots`` of its own, in all of its trees together.

    0: as many as now. ``forest``: over others; None: as now. In mode ``shared`` the job's
    aggregators are put above the first. ``mode``: another one; empty: as now. Where there is no
    room for both ranges beside one another, they share slots: then it is a change in place.

    Raises:
        JobConflictError: the job does not run, changes already, or is of a mode that does not.
        JobRequestError: it can never have so many, or not over these, or not in this mode.
        NoRoomError: a switch has no room, or the tenant's quota is in use.
    """
    _check_runs(job)
    former, slots = job.mapping, slots or job.slots
    mode = registry.site.mode(job.name, mode or job.mode)
    for its in (job.mode, mode):
        if not modes.of(its).may_change:
            raise JobConflictError(
                f"job {job.name!r}: what a job of mode {its!r} begins with stays: its slots, its"
                " switches and its mode"
            )
    over = forest_of(registry, job, forest, mode)
    if over != former.forest:
        check_forest(job.name, over, registry.switches)
        check_pipes(job, over, registry.switches)
    others = [other for other in registry if other is not job]
    slots = over.divisible(job.name, slots)
    needed = {}
    if modes.of(mode).is_sized:
        needed = {name: over.slots_at(name, slots) for name in over.own}
    registry.admission.check_quota(job.spec, needed, others)
    own = _take(registry, job, over, slots)
    host_first = _host_first(former, over, slots)
    in_place = _shares(former, own, over, range(host_first, host_first + slots))
    try:
        if in_place and slots == job.slots and over == former.forest:
            raise NoRoomError(f"job {job.name!r}: no other {slots} slots are free to move it to")
        is_other = over != former.forest
        numbers = registry.numbers.take_for_change(job, len(over)) if is_other else former.numbers
    except NoRoomError:
        for switch, taken in own.items():
            registry.switches[switch].memory.give_back(taken)
        raise
    left = registry.admission.slots_left(job.tenant, others)
    memory = own | registry.site.arcs(over, slots, left)
    epoch = registry.epochs.next()
    if low_epoch(epoch) == low_epoch(former.epoch):  # tables match no more of it
        epoch = registry.epochs.next()
    size = (memory, window(over, memory, registry.switches), host_first)
    new = Mapping(epoch, numbers, over, *size, mode)
    job.change = Change(new, why, in_place=in_place)
    return job.change


def turn(job: Job) -> None:
    """All ranks are done with what the former mapping has: the job has the new one from now on.

    What is beside it is then the former one, which goes.
    """
    change = job.change
    assert change is not None
    change.on(Step.DONE)
    job.placed, change.other = change.other, job.mapping
    job.first_operation = change.first_operation


def release(registry: Registry, job: Job, switch: str) -> None:
    """A switch has nothing of the job's other mapping alone any more: frees its slots there."""
    assert job.change is not None
    registry.give_back(job.change.other, switch)


def end(registry: Registry, job: Job) -> None:
    """No switch has anything of the other mapping alone any more: the job has one mapping."""
    change, job.change = job.change, None
    assert change is not None
    for switch in list(change.other.memory):
        registry.give_back(change.other, switch)
    stay = {job.number, *job.mapping.numbers}
    registry.numbers.give_back(it for it in change.other.numbers if it not in stay)


def _check_runs(job: Job) -> None:
    if job.state is not JobState.RUNNING:
        raise JobConflictError(f"job {job.name!r} does not run: it is {job.state.value}")
    if job.change is not None:
        new = job.newest_mapping
        raise JobConflictError(
            f"job {job.name!r} changes already: to {new.slots} slots ({job.change.stage.value})"
        )


def forest_of(registry: Registry, job: Job, forest: Forest | None, mode: str) -> Forest:
    """What :func:`begin` changes a job to; raises :class:`JobRequestError`: not in this mode."""
    site, now = registry.site, job.mapping.forest
    if forest is None and mode == job.mode:
        return now
    over = with_nodes_of(now, site.bare(job, forest or now))
    return site.forest(job, over, registry.placement.port_to, mode=mode)


def _take(registry: Registry, job: Job, over: Forest, slots: int) -> dict[str, SlotRange]:
    """Slots of its own on each switch of trees where it is to have any, or on none."""
    check_even(job.name, slots)
    if _is_on_hosts(over) and slots > names.SLOTS_TOTAL:
        raise JobRequestError(
            f"job {job.name!r}: {slots} slots: what sums on a host has {names.SLOTS_TOTAL}"
        )
    found: dict[str, SlotRange] = {}
    try:
        for name in over.own:
            memory, its = registry.switches[name].memory, over.slots_at(name, slots)
            try:
                found[name] = memory.take_range(job.name, its)
            except NoRoomError:
                if name not in job.memory:
                    raise
                found[name] = memory.take_range(job.name, its, over=job.memory[name])
    except (JobRequestError, NoRoomError):
        for switch, taken in found.items():
            registry.switches[switch].memory.give_back(taken)
        raise
    return found


def _host_first(former: Mapping, over: Forest, slots: int) -> int:
    """First slot on nodes on hosts, of which the job has all: beside those it has, if they fit."""
    end = former.host_first + former.slots
    fits_behind = slots > former.host_first and end + slots <= names.SLOTS_TOTAL
    return end if _is_on_hosts(over) and fits_behind else 0


def _is_on_hosts(over: Forest) -> bool:
    return any(node.host is not None for tree in over for node in tree)


def _shares(former: Mapping, own: dict[str, SlotRange], over: Forest, on_hosts: range) -> bool:
    """Whether some slot is both mappings', and no other job's."""
    # Where the job shared slots until now, these are none of those that one has alone.
    had = former.memory
    pairs = [(taken, had[name]) for name, taken in own.items() if name in had]
    if any(a.first < b.end and b.first < a.end for a, b in pairs):
        return True
    if not (_is_on_hosts(over) and _is_on_hosts(former.forest)):
        return False
    return on_hosts.start < former.host_first + former.slots and former.host_first < on_hosts.stop
