"""Whether what a rank asks for is the job that there is. Pure."""

from __future__ import annotations

from ina.controller.errors import JobConflictError, JobTokenError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs import tokens


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
