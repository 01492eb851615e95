"""Whether what a rank asks for is the job that there is. Pure."""

from __future__ import annotations

from ina.controller.errors import JobConflictError, JobTokenError
from ina.controller.job import Job, JobState
from ina.controller.jobs import tokens
from ina.protocol.verify import Verify


def check_same(
    job: Job, world_size: int, tenant: str, token: str, verify: Verify | None, mode: str
) -> None:
    """Raises :class:`JobConflictError`, :class:`JobTokenError`: another rank's CreateJob is not of
    this job, or comes too late. Who does not have the token hears nothing else of the job.
    """
    if job.token_hash:
        check_token(job, token)
    if job.state is not JobState.JOINING:
        raise JobConflictError(f"the name {job.name!r} is in use: {who(job)}")
    check_token(job, token)
    if job.world_size != world_size:
        raise JobConflictError(
            f"job {job.name!r} was created with {job.world_size} workers, not {world_size}"
        )
    if job.tenant != tenant:
        raise JobConflictError(f"job {job.name!r} is of tenant {job.tenant!r}, not {tenant!r}")
    if mode and job.mode != mode:
        raise JobConflictError(f"job {job.name!r} has mode {job.mode!r}, not {mode!r}")
    if verify is not None and job.verify != verify:
        how = "by default" if job.verify is None else f"by {job.verify!r}"
        raise JobConflictError(
            f"job {job.name!r} verifies its sums {how}, not {verify!r}: all its workers must ask"
            " for the same"
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
