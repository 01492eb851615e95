"""What a store would do for a controller that starts, without changing anything in it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from ina.controller.config.store_url import IN_MEMORY, path_of, shown
from ina.controller.errors import StoreError
from ina.controller.store import open_database
from ina.controller.store.interface import Transaction, check_version


@dataclass(frozen=True)
class StoreReport:
    """What was found; all 0 and empty where there is nothing yet."""

    name: str
    """Path or URL, without a password; empty: in memory."""
    version: int = 0
    """Of its schema; 0: a controller that starts will create it."""
    jobs: int = 0
    holder: str = ""
    """Who has claimed it last; that controller may have ended since."""
    claimed_unix_s: float = 0.0
    switch: str = ""
    """Where workers reach that controller's switch."""

    def __str__(self) -> str:
        if not self.name:
            return "store in memory: lost with the process"
        if not self.version:
            return f"store {self.name}: will be created"
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.claimed_unix_s))
        held = f"claimed by {self.holder} at {since}" if self.holder else "claimed by nobody"
        of = f" for the switch at {self.switch}" if self.switch else ""
        return f"store {self.name}: schema {self.version}, jobs {self.jobs}, {held}{of}"


def check_store(url: str) -> StoreReport:
    """Opens it, asks whether it may be written, and looks at its schema and claim.

    Raises :class:`StoreError`, :class:`~ina.errors.MissingToolError`.
    """
    if url == IN_MEMORY:
        return StoreReport("")
    path = path_of(url)
    if path is not None and not Path(path).exists():
        _check_folder(Path(path))
        return StoreReport(path)
    database = open_database(url, create=False)
    try:
        with database.transaction() as db:
            version = database.version(db)
            check_version(database.name, version)
            database.check_rights(db)
            if not version:
                return StoreReport(shown(url))
            return _report(shown(url), version, db, database.claim_lock)
    finally:
        database.close()


def _report(name: str, version: int, db: Transaction, lock: str) -> StoreReport:
    held = db.execute(f"SELECT holder, claimed_unix_s, switch_addr FROM claim{lock}").fetchone()
    (jobs,) = db.execute("SELECT count(*) FROM jobs").fetchone()
    return StoreReport(name, version, jobs, *held)


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreError(f"store {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise StoreError(f"store {path}: this user may not create it in {path.parent}")
