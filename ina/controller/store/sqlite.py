"""A store in a SQLite file, or in memory."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from ina.controller.errors import StoreError
from ina.controller.store.interface import Transaction, check_version
from ina.controller.store.schema import APPLICATION_ID, TABLES, VERSION

LOCK_TIMEOUT_S = 5.0
"""How long a change waits for another process's; each takes milliseconds."""
_MEMORY = ":memory:"


class SqliteDatabase:
    """One connection; several processes may have the file open. See :class:`Database`."""

    claim_lock = ""  # a transaction locks the file

    def __init__(self, path: str | None, *, create: bool = True) -> None:
        """None: in memory. A file is created for this user's eyes only: it holds secrets.

        With ``create=False`` it must be there, and stays as it is until something is written.
        """
        self.name = path or _MEMORY
        self._db: sqlite3.Connection | None = None
        try:
            if path is not None:
                made = os.O_CREAT if create else 0
                os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | made, 0o600))
            self._db = sqlite3.connect(self.name, timeout=LOCK_TIMEOUT_S, isolation_level=None)
            if create:
                self._db.execute("PRAGMA journal_mode = WAL")
            # WAL's default forgets the last changes when the machine loses power.
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise self._error(error) from None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """See :class:`Database`."""
        if self._db is None:
            raise StoreError(f"store {self.name}: it is closed")
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

    def version(self, db: Transaction) -> int:
        """``PRAGMA user_version`` has it."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise StoreError(f"store {self.name}: this SQLite file belongs to another program")
        return int(version)

    def check_rights(self, db: Transaction) -> None:
        """A transaction begins with the right to write the file."""

    def create(self) -> None:
        """See :class:`Database`."""
        with self.transaction() as db:
            version = self.version(db)
            check_version(self.name, version)
            for statement in () if version else TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")

    def renew(self) -> None:
        """A file does not go away."""

    def close(self) -> None:
        """See :class:`Database`."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _error(self, error: Exception) -> StoreError:
        what = error.strerror if isinstance(error, OSError) else str(error)
        return StoreError(f"store {self.name}: {what}")
