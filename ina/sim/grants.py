"""Whether what switches have of jobs is theirs: ranges apart, arcs of shared slots, quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ina import modes
from ina.controller.job import Job
from ina.controller.switches.plan import MARK_JOB
from ina.p4 import names
from ina.sim.fabric import SimSwitch
from ina.sim.plane import ControlPlane
from ina.tables.values import Entry


def wrong_grants(
    plane: ControlPlane, switch: SimSwitch, quotas: Mapping[str, int]
) -> Iterator[str]:
    """A line for each thing that is not as it should be, after a job was let in at ``switch``.

    ``quotas``: slots by tenant, 0: any number.
    """
    shares = {it.name: it.slots_shared for it in plane.config.switches}
    limit = names.SLOTS_TOTAL - shares.get(switch.name, 0)
    # A job that changes in place has another number over another tree, and the same slots; what a
    # controller has sent may arrive when it was killed.
    jobs = plane.known_jobs()
    owners = {number: job.number for job in jobs for number in job.numbers}
    own: list[tuple[int, range]] = []
    for job, entry in _jobs(switch):
        granted = _granted(entry)
        where = f"switch {switch.name}: job {job} has slots {granted.start}..{granted.stop - 1}"
        if modes.shares_slots(entry):
            if granted and (granted.start < limit or granted.stop > names.SLOTS_TOTAL):
                yield f"{where} of those that jobs share, which begin at {limit}"
            continue
        if granted.stop > limit:
            yield f"{where} of its own, and from {limit} on jobs share them"
        for other, its in own:
            is_other = owners.get(other, other) != owners.get(job, job)
            if is_other and granted.start < its.stop and its.start < granted.stop:
                yield f"{where}, and so has job {other} {its.start}..{its.stop - 1}"
        own.append((job, granted))
    yield from _beyond(plane, jobs, quotas)


def _beyond(plane: ControlPlane, known: Sequence[Job], quotas: Mapping[str, int]) -> Iterator[str]:
    jobs = {number: job for job in known for number in job.numbers}
    of_mappings: Counter[tuple[str, int]] = Counter()
    for name in plane.agents:
        for number, entry in _jobs(plane.fabric.switches[name]):
            if modes.shares_slots(entry) and number in jobs:
                epoch = entry.param("epoch")
                of_mappings[jobs[number].name, epoch] += len(_granted(entry))
    # A job that changes has both for a while: each has to be within what others leave.
    of_jobs: dict[str, int] = {}
    for (name, _), slots in of_mappings.items():
        of_jobs[name] = max(of_jobs.get(name, 0), slots)
    claimable: Counter[str] = Counter()
    for name, tenant in {job.name: job.tenant for job in jobs.values()}.items():
        claimable[tenant] += of_jobs.get(name, 0)
    for tenant, slots in claimable.items():
        if 0 < quotas.get(tenant, 0) < slots:
            yield f"tenant {tenant} may claim {slots} slots, and its quota is {quotas[tenant]}"


def _jobs(switch: SimSwitch) -> Iterator[tuple[int, Entry]]:
    for entry in switch.entries(names.JOBS):
        job = entry.exact("job")
        if job != MARK_JOB:
            yield job, entry


def _granted(entry: Entry) -> range:
    """Slots of its own; of shared ones, those that it may claim."""
    params = dict(entry.params)
    first = params["first_slot"]
    shared = modes.shares_slots(entry)
    return range(first, first + params["claimable" if shared else "slots"])
