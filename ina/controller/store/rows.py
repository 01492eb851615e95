"""Jobs, members and controllers as rows. Every function runs in its caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import NamedTuple, TypeVar

import msgspec

from ina.controller.change import Change
from ina.controller.errors import StoreError
from ina.controller.job import Departure, Job, JobSpec, JobState
from ina.controller.store.interface import Transaction
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.mapping import Mapping as JobMapping

_T = TypeVar("_T")


class JobRow(msgspec.Struct, frozen=True):
    """What a job's row says in JSON, beside its number and its state."""

    spec: JobSpec
    epoch: int
    created_unix_s: float
    token_hash: bytes
    key_seed: bytes
    first_operation: int
    placed: JobMapping | None
    change: Change | None


def _made(of: type[_T], said: str) -> _T:
    return of(said)  # type: ignore[call-arg]


# Made here: msgspec crashes where two threads decode the first of a type at once.
_JOB = msgspec.json.Decoder(JobRow, dec_hook=_made)
_ENDPOINT = msgspec.json.Decoder(Endpoint, dec_hook=_made)


class MemberRow(NamedTuple):
    """A worker of a job, here or not."""

    where: Endpoint
    is_here: bool
    left: Departure | None
    """How far it had come when it left, if it said so."""


@dataclass(frozen=True)
class Saved:
    """What the store has of a job."""

    row: tuple[str, str, str]
    members: Mapping[int, Endpoint]
    departures: Mapping[int, Departure]


def put_epoch(db: Transaction, last: int) -> None:
    """Sets the last epoch issued."""
    db.execute(
        "INSERT INTO last_epoch VALUES (1, ?)"
        " ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch",
        (last,),
    )


def put_job(db: Transaction, job: Job, former: Saved | None = None) -> Saved:
    """Inserts or updates a job and its members; see ``Store.save``. Returns what is there then.

    ``former``: what is there; then only what differs is written, for a thousand ranks join one
    after the other. None: it is not known.
    """
    row = _row(job)
    if former is None or former.row != row:
        db.execute(
            "INSERT INTO jobs (number, name, state, job) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (number) DO UPDATE SET name = excluded.name, state = excluded.state,"
            " job = excluded.job",
            (job.number, *row),
        )
    _put_members(db, job, former)
    return Saved(row, dict(job.members), dict(job.departures))


def _row(job: Job) -> tuple[str, str, str]:
    change = None if job.change is None else job.change.afresh(0.0)
    row = JobRow(
        job.spec,
        job.epoch,
        job.created_unix_s,
        job.token_hash,
        job.key_seed,
        job.first_operation,
        job.placed,
        change,
    )
    return job.name, job.state.value, _text(row)


def _put_members(db: Transaction, job: Job, former: Saved | None) -> None:
    is_joining = job.state is JobState.JOINING
    had = {} if former is None else former.members
    gone = had.keys() - job.members.keys()
    change = "DELETE FROM members" if is_joining else "UPDATE members SET here = 0"
    if former is None:
        db.execute(f"{change} WHERE job = ?", (job.number,))
    elif gone:
        ranks = [(job.number, rank) for rank in sorted(gone)]
        db.executemany(f"{change} WHERE job = ? AND rank = ?", ranks)
    db.executemany(
        "INSERT INTO members (job, rank, here, endpoint) VALUES (?, ?, 1, ?)"
        " ON CONFLICT (job, rank) DO UPDATE SET endpoint = excluded.endpoint, here = 1",
        [
            (job.number, rank, _text(replace(at, process="", switch="", node=None)))
            for rank, at in job.members.items()
            if had.get(rank) != at
        ],
    )
    said = {} if former is None else former.departures
    db.executemany(
        "UPDATE members SET submitted = ?, finished = ? WHERE job = ? AND rank = ? AND here = 0",
        [
            (left.submitted, left.finished, job.number, rank)
            for rank, left in job.departures.items()
            if rank in gone or said.get(rank) != left
        ],
    )


def get_jobs(db: Transaction, now_s: float) -> list[Job]:
    """Every job by number, without its members; ``now_s`` becomes when changes began."""
    found = []
    for number, state, text in db.execute("SELECT number, state, job FROM jobs ORDER BY number"):
        row = _value(f"job {number}", text, _JOB)
        found.append(
            Job(
                row.spec,
                number,
                created_s=now_s,
                placed=row.placed,
                epoch=row.epoch,
                state=JobState(state),
                created_unix_s=row.created_unix_s,
                token_hash=row.token_hash,
                key_seed=row.key_seed,
                first_operation=row.first_operation,
                change=None if row.change is None else row.change.afresh(now_s),
            )
        )
    return found


def get_members(db: Transaction, now_s: float) -> dict[int, dict[int, MemberRow]]:
    """Of every job, by its number and by rank; ``now_s`` becomes when those left that have."""
    found: dict[int, dict[int, MemberRow]] = {}
    for job, rank, here, text, submitted, finished in db.execute(
        "SELECT job, rank, here, endpoint, submitted, finished FROM members ORDER BY job, rank"
    ):
        where = _value(f"rank {rank} of job {job}", text, _ENDPOINT)
        has_said = not here and submitted is not None
        left = Departure(str(where), submitted, finished, now_s) if has_said else None
        found.setdefault(job, {})[rank] = MemberRow(where, bool(here), left)
    return found


def _text(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=_said).decode()


def _said(value: object) -> str:
    assert isinstance(value, IPv4Address)
    return str(value)


def _value(what: str, text: str, decoder: msgspec.json.Decoder[_T]) -> _T:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, JobRequestError) as error:
        raise StoreError(f"{what} in the store cannot be read: {error}") from None


@dataclass(frozen=True)
class Candidate:
    """A controller that stands for the lead: it is primary, or would be."""

    name: str
    digests: dict[str, str]
    seen_unix_s: float
    """When it wrote this, by its own clock."""


def get_candidates(db: Transaction) -> list[Candidate]:
    """All that are kept, by name."""
    found = db.execute("SELECT name, digests, seen_unix_s FROM controllers ORDER BY name")
    return [
        Candidate(name, msgspec.json.decode(text, type=dict[str, str]), seen_unix_s)
        for name, text, seen_unix_s in found
    ]


def put_candidate(db: Transaction, candidate: Candidate, forget_before_unix_s: float) -> None:
    """Writes one; forgets those of before that time."""
    remove_candidate(db, candidate.name)
    text = msgspec.json.encode(candidate.digests).decode()
    row = (candidate.name, text, candidate.seen_unix_s)
    db.execute("INSERT INTO controllers VALUES (?, ?, ?)", row)
    db.execute("DELETE FROM controllers WHERE seen_unix_s < ?", (forget_before_unix_s,))


def remove_candidate(db: Transaction, name: str) -> None:
    """It has ended."""
    db.execute("DELETE FROM controllers WHERE name = ?", (name,))


def holder(db: Transaction) -> str:
    """The name of who has claimed the store last."""
    (name,) = db.execute("SELECT holder FROM claim").fetchone()
    return str(name)
