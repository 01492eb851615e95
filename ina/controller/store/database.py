"""Reading and writing the store. Calls block for a disk write; each change is one transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ina.controller.errors import FencedError, OtherSwitchError
from ina.controller.job import Job
from ina.controller.store import rows
from ina.controller.store.interface import Database, Transaction
from ina.trees.endpoint import Endpoint

_log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """Who may change a store."""

    generation: int
    """How often it was claimed."""
    name: str
    claimed_unix_s: float
    """Tells two claims of one generation apart: a database that fails over to a copy, or is
    restored, may have forgotten the last ones."""
    switch: str
    """Where workers reach its switch; empty: not known."""


_HOLDER = "SELECT generation, holder, claimed_unix_s, switch_addr FROM claim"


@dataclass(frozen=True)
class StoredJob:
    """A job as it was stored, and the endpoints of all its ranks, here or not."""

    job: Job
    endpoints: dict[int, Endpoint]


class Store:
    """One open database. Every method raises :class:`StoreError` if it cannot be used.

    Several controllers may have it open. Who wants to change it must :meth:`claim` it first, which
    ends the right of whoever did before.
    """

    def __init__(self, database: Database, unix_clock: Callable[[], float] = time.time) -> None:
        """Makes the tables where there are none. Closes the database in the end."""
        self.name = database.name
        """For people."""
        self._database = database
        self._unix_clock = unix_clock
        try:
            database.create()
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Closes the database; may be called again."""
        self._database.close()

    def claim(self, holder: str, switch: str = "", *, moves: bool = False) -> Claim:
        """Takes the right to change the store, from whoever had it.

        ``holder`` is for people's eyes: who it is. ``switch``: where workers reach its switch;
        where the store is another switch's, ``moves`` makes it this one's.

        Raises :class:`OtherSwitchError`.
        """
        self._database.renew()
        with self.transaction() as (db, former):
            if not moves:
                self._check_switch(former, switch)
            elif _are_two(former.switch, switch):
                words = "store %s: of the switch at %s, claimed by %s: is that of the one at %s now"
                _log.warning(words, self.name, former.switch, former.name, switch)
            db.execute(
                "UPDATE claim SET generation = generation + 1, holder = ?, claimed_unix_s = ?,"
                " switch_addr = ?",
                (holder, self._unix_clock(), switch),
            )
            return Claim(self, Holder(*db.execute(_HOLDER).fetchone()))

    def check_switch(self, switch: str) -> None:
        """Raises :class:`OtherSwitchError`: it is claimed for another one than ``switch``."""
        with self.transaction() as (_, holder):
            self._check_switch(holder, switch)

    def _check_switch(self, holder: Holder, switch: str) -> None:
        if _are_two(holder.switch, switch):
            raise OtherSwitchError(
                f"store {self.name}: {holder.name} has claimed it for the switch at"
                f" {holder.switch}, and this controller's is at {switch}: give each switch a store"
                " of its own, and start this controller again"
            )

    def last_epoch(self) -> int | None:
        """The last epoch issued, or None if none was."""
        with self.transaction() as (db, _):
            row = db.execute("SELECT epoch FROM last_epoch").fetchone()
        return None if row is None else int(row[0])

    def load(self, now_s: float) -> list[StoredJob]:
        """Every job, by number. ``now_s`` (monotonic) becomes when they were created."""
        stored = []
        with self.transaction() as (db, _):
            members = rows.get_members(db, now_s)
            for job in rows.get_jobs(db, now_s):
                found = members.get(job.number, {})
                job.members = {rank: row.where for rank, row in found.items() if row.is_here}
                job.departures = {
                    rank: row.left for rank, row in found.items() if row.left is not None
                }
                stored.append(StoredJob(job, {rank: row.where for rank, row in found.items()}))
        return stored

    def load_down(self) -> list[str]:
        """Links and switches that were said to be down."""
        with self.transaction() as (db, _):
            return [str(name) for (name,) in db.execute("SELECT name FROM down ORDER BY name")]

    @contextmanager
    def transaction(self) -> Iterator[tuple[Transaction, Holder]]:
        """Who has the claim, until the block ends; then it commits. Rolls back when it raises.

        All transactions hold the claim, so one comes after the other, and who claims waits for the
        change that a former holder has begun.
        """
        with self._database.transaction() as db:
            found = db.execute(_HOLDER + self._database.claim_lock)
            yield db, Holder(*found.fetchone())


def _are_two(switch: str, other: str) -> bool:
    return bool(switch and other) and switch != other


class Claim:
    """The right to change a store, until somebody else claims it.

    Each method is one transaction, and raises :class:`FencedError` when the right has ended, or
    :class:`OtherSwitchError` where it has for another switch's sake.
    """

    def __init__(self, store: Store, holder: Holder) -> None:
        self.store = store
        self._holder = holder
        self._saved: WeakKeyDictionary[Job, rows.Saved] = WeakKeyDictionary()
        """What the store has of each job that was saved by this claim: nobody else writes."""

    def check(self) -> None:
        """Raises :class:`FencedError` if somebody else has claimed the store since."""
        with self._change():
            pass

    def save_epoch(self, last: int) -> None:
        """Remembers the last epoch issued."""
        with self._change() as db:
            rows.put_epoch(db, last)

    def save_down(self, names: Iterable[str]) -> None:
        """Remembers which links and switches were said to be down: these, and no others."""
        with self._change() as db:
            db.execute("DELETE FROM down")
            db.executemany("INSERT INTO down VALUES (?)", [(name,) for name in sorted(names)])

    def save(self, job: Job, *, last_epoch: int | None = None) -> None:
        """Writes a job as it is now, and the last epoch issued if it is given: both or neither.

        A job that still joins forgets ranks that are not in it; a started one keeps their
        endpoints.
        """
        with self._change() as db:
            saved = rows.put_job(db, job, self._saved.get(job))
            if last_epoch is not None:
                rows.put_epoch(db, last_epoch)
        self._saved[job] = saved

    def remove(self, *jobs: Job) -> None:
        """Forgets jobs that have ended."""
        with self._change() as db:
            db.executemany("DELETE FROM jobs WHERE number = ?", [(job.number,) for job in jobs])
        for job in jobs:
            self._saved.pop(job, None)

    @contextmanager
    def _change(self) -> Iterator[Transaction]:
        with self.store.transaction() as (db, holder):
            if holder != self._holder:
                self.store._check_switch(holder, self._holder.switch)
                raise FencedError(f"store {self.store.name}: {holder.name} has claimed it")
            yield db
