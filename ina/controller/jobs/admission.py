"""Who may run what: tenants, their quotas, priorities, whom a job may push out, and whether what a
rank asks for is the job that there is. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ina import modes
from ina.controller.config import TenantConfig
from ina.controller.errors import (
    JobConflictError,
    JobTokenError,
    QuotaError,
    SlotQuotaError,
    TenantError,
)
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs import tokens

DEFAULT_TENANT = "default"
MAX_TENANT_CHARS = 200


class Usage(NamedTuple):
    """What jobs have together."""

    jobs: int
    slots: int
    """Reserved, used or not, on all switches."""
    workers: int
    """That they are for, here or not."""


def usage(jobs: Iterable[Job]) -> Usage:
    """Adds up."""
    each = [(1, _reserved(job), job.world_size) for job in jobs]
    return Usage(*map(sum, zip(*each, strict=True))) if each else Usage(0, 0, 0)


def _reserved(job: Job) -> int:
    """While its mapping changes, slots of both. Where jobs share slots: those that it may claim."""
    return sum(
        taken.reserved
        for had in job.mappings
        for name, taken in had.memory.items()
        if modes.of(had.mode).is_sized or had.shares_slots_of(name)
    )


def _spread(own: Mapping[str, int]) -> str:
    """How they come together, where that is of several switches."""
    if len(own) < 2:
        return ""
    each = set(own.values())
    if len(each) == 1:
        return f": {each.pop()} on each of {len(own)} switches, {', '.join(own)}"
    return ": " + ", ".join(f"{slots} on {name}" for name, slots in own.items())


class Admission:
    """The rules. Without any tenant every name is one, without limits."""

    def __init__(
        self,
        tenants: Mapping[str, TenantConfig],
        *,
        preempt: bool = False,
        unjoined_s: float = 60.0,
    ) -> None:
        self._tenants = dict(tenants)
        self.preempt = preempt
        """Whether a job may push out others of lower priority."""
        self.unjoined_s = unjoined_s
        """A job that no worker has joined ends after so long."""

    def tenant(self, job: str, asked: str) -> str:
        """The tenant's name.

        Raises :class:`TenantError`: it cannot be one, or others are configured and it is not.
        """
        name = asked or DEFAULT_TENANT
        if not name.isprintable() or len(name) > MAX_TENANT_CHARS:
            raise TenantError(
                f"job {job!r}: tenant {name[:MAX_TENANT_CHARS]!r}: not 1 to {MAX_TENANT_CHARS}"
                " printable characters"
            )
        if self._tenants and name not in self._tenants:
            unsaid = "" if asked else "; the job names none: set INA_TENANT"
            raise TenantError(f"job {job!r}: no tenant is called {name!r}{unsaid}")
        return name

    def priority(self, tenant: str, asked: int) -> int:
        """What the tenant may have of the priority that was asked for."""
        limits = self._tenants.get(tenant)
        return asked if limits is None else min(asked, limits.max_priority)

    def dscp(self, tenant: str) -> int:
        """What its workers' packets carry where they ask for nothing."""
        limits = self._tenants.get(tenant)
        return 0 if limits is None else limits.dscp

    def check_quota(self, spec: JobSpec, own: Mapping[str, int], jobs: Iterable[Job]) -> None:
        """Raises :class:`QuotaError` if one more job would be more than the tenant may have.

        ``own``: the slots that it would have, by switch: they count on each.
        """
        limits = self._tenants.get(spec.tenant)
        if limits is None:
            return
        has = usage(other for other in jobs if other.tenant == spec.tenant)
        for what, limit, used, wanted in (
            ("jobs", limits.jobs, has.jobs, 1),
            ("slots", limits.slots, has.slots, sum(own.values())),
            ("workers", limits.workers, has.workers, spec.world_size),
        ):
            # While another's mapping changes the tenant may have more than its slots: no matter
            # to who takes none, in mode `shared`.
            if limit and wanted and used + wanted > limit:
                where = _spread(own) if what == "slots" else ""
                kind = SlotQuotaError if what == "slots" else QuotaError
                raise kind(
                    f"job {spec.name!r}: quota of tenant {spec.tenant!r}: {used} of {limit} {what}"
                    f" in use, and this needs {wanted} more{where}"
                )

    def slots_left(self, tenant: str, jobs: Iterable[Job]) -> int | None:
        """How many more the tenant may have; None: any number."""
        limits = self._tenants.get(tenant)
        if limits is None or not limits.slots:
            return None
        return max(0, limits.slots - usage(it for it in jobs if it.tenant == tenant).slots)

    def tenants(self, jobs: Iterable[Job]) -> list[tuple[str, Usage, TenantConfig | None]]:
        """By name: each tenant that is configured or has a job, what it has, and its limits."""
        of: dict[str, list[Job]] = {name: [] for name in self._tenants or [DEFAULT_TENANT]}
        for job in jobs:
            of.setdefault(job.tenant, []).append(job)
        return [(name, usage(of[name]), self._tenants.get(name)) for name in sorted(of)]

    def victims(
        self, priority: int, jobs: Iterable[Job], fits: Callable[[Sequence[Job]], bool]
    ) -> list[Job]:
        """The jobs to end so that one of ``priority`` ``fits``; [] if that cannot be.

        Lowest priority first, of the same the youngest first; none whose end is of no use.
        """
        if not self.preempt:
            return []
        lower = [job for job in jobs if job.priority < priority]
        lower.sort(key=lambda job: (job.priority, -job.created_s, job.number))
        chosen: list[Job] = []
        for job in lower:
            chosen.append(job)
            if fits(chosen):
                break
        else:
            return []
        for job in reversed(chosen[:-1]):
            rest = [other for other in chosen if other is not job]
            if fits(rest):
                chosen = rest
        return chosen


def check_same(job: Job, asked: JobSpec) -> None:
    """Raises :class:`JobConflictError`, :class:`JobTokenError`: another rank's CreateJob is not of
    this job, or comes too late. Who does not have the token hears nothing else of the job.
    """
    if job.token_hash:
        check_token(job, asked.token)
    if job.state is not JobState.JOINING:
        raise JobConflictError(f"the name {job.name!r} is in use: {who(job)}")
    check_token(job, asked.token)
    if job.world_size != asked.world_size:
        raise JobConflictError(
            f"job {job.name!r} was created with {job.world_size} workers, not {asked.world_size}"
        )
    if job.tenant != asked.tenant:
        raise JobConflictError(
            f"job {job.name!r} is of tenant {job.tenant!r}, not {asked.tenant!r}"
        )
    if asked.mode and job.mode != asked.mode:
        raise JobConflictError(f"job {job.name!r} has mode {job.mode!r}, not {asked.mode!r}")
    if asked.verify is not None and job.verify != asked.verify:
        how = "by default" if job.verify is None else f"by {job.verify!r}"
        raise JobConflictError(
            f"job {job.name!r} verifies its sums {how}, not {asked.verify!r}: all its workers must"
            " ask for the same"
        )


def check_token(job: Job, token: str) -> None:
    """Raises :class:`JobTokenError`."""
    if not tokens.token_matches(token, job.token_hash):
        has = "another join token" if job.token_hash else "no join token"
        raise JobTokenError(f"job {job.name!r} was created with {has}")


def who(job: Job) -> str:
    """How it is, for people."""
    ranks = ", ".join(map(str, sorted(job.members))) or "none"
    return f"it is {job.state.value} (epoch {job.epoch}, ranks here: {ranks})"
