"""Reading and writing the store. Calls block for a disk write; each change is one transaction."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ina.controller.errors import FencedError, StoreError
from ina.controller.jobs import Endpoint, Job
from ina.controller.store import rows
from ina.controller.store.schema import migrate

IN_MEMORY = ":memory:"
"""A path: the store lives and dies with this process."""

LOCK_TIMEOUT_S = 5.0
"""How long a change waits for another process's; each takes milliseconds."""


@dataclass(frozen=True)
class StoredJob:
    """A job as it was stored, and the endpoints of all its ranks, here or not."""

    job: Job
    endpoints: dict[int, Endpoint]


class Store:
    """One open file. Every method raises :class:`StoreError` if the file cannot be used.

    Several controllers may have it open. Who wants to change it must :meth:`claim` it first, which
    ends the right of whoever did before.
    """

    def __init__(self, path: str) -> None:
        """Opens ``path``, or creates it for this user's eyes only: it holds secrets."""
        self.path = path
        self._db: sqlite3.Connection | None = None
        try:
            if path != IN_MEMORY:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, timeout=LOCK_TIMEOUT_S, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            # WAL's default forgets the last changes when the machine loses power.
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            migrate(self._db, path)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise self._error(error) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the file; may be called again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def claim(self, holder: str) -> Claim:
        """Takes the right to change the store, from whoever had it.

        ``holder`` is for people's eyes: who it is.
        """
        with self.transaction() as db:
            db.execute(
                "UPDATE claim SET generation = generation + 1, holder = ?, claimed_unix_s = ?",
                (holder, time.time()),
            )
            (generation,) = db.execute("SELECT generation FROM claim").fetchone()
        return Claim(self, generation)

    def last_epoch(self) -> int | None:
        """The last epoch issued, or None if none was."""
        with self.transaction() as db:
            row = db.execute("SELECT epoch FROM last_epoch").fetchone()
        return None if row is None else int(row[0])

    def load(self, now_s: float) -> list[StoredJob]:
        """Every job, by number. ``now_s`` (monotonic) becomes when they were created."""
        stored = []
        with self.transaction() as db:
            for job in rows.get_jobs(db, now_s):
                members = rows.get_members(db, job.number)
                job.members = {rank: where for rank, (where, here) in members.items() if here}
                stored.append(StoredJob(job, {rank: at for rank, (at, _) in members.items()}))
        return stored

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commits when the block ends, rolls back when it raises."""
        if self._db is None:
            raise StoreError(f"store {self.path}: it is closed")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> StoreError:
        what = error.strerror if isinstance(error, OSError) else str(error)
        return StoreError(f"store {self.path}: {what}")


class Claim:
    """The right to change a store, until somebody else claims it.

    Each method is one transaction, and raises :class:`FencedError` when the right has ended.
    """

    def __init__(self, store: Store, generation: int) -> None:
        self.store = store
        self._generation = generation

    def check(self) -> None:
        """Raises :class:`FencedError` if somebody else has claimed the store since."""
        with self._change():
            pass

    def save_epoch(self, last: int) -> None:
        """Remembers the last epoch issued."""
        with self._change() as db:
            rows.put_epoch(db, last)

    def save(self, job: Job, *, last_epoch: int | None = None) -> None:
        """Writes a job as it is now, and the last epoch issued if it is given: both or neither.

        A job that still joins forgets ranks that are not in it; a started one keeps their
        endpoints.
        """
        with self._change() as db:
            rows.put_job(db, job)
            if last_epoch is not None:
                rows.put_epoch(db, last_epoch)

    def remove(self, *jobs: Job) -> None:
        """Forgets jobs that have ended."""
        with self._change() as db:
            db.executemany("DELETE FROM jobs WHERE number = ?", [(job.number,) for job in jobs])

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self.store.transaction() as db:
            generation, holder = db.execute("SELECT generation, holder FROM claim").fetchone()
            if generation != self._generation:
                raise FencedError(f"store {self.store.path}: {holder} has claimed it")
            yield db
