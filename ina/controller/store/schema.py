"""The tables, as the migrations that made them. ``PRAGMA user_version`` counts those applied.

A released migration is never changed: what is to be different comes as the next one.
"""

from __future__ import annotations

import sqlite3

from ina.controller.errors import StoreError

APPLICATION_ID = 0x696E6163
"""Marks the file as a controller's ("inac"), for SQLite and for ``file``."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Who may write: the controller that claimed last. One row.
        """CREATE TABLE claim (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            generation INTEGER NOT NULL,
            holder TEXT NOT NULL,
            claimed_unix_s REAL NOT NULL
        )""",
        "INSERT INTO claim VALUES (1, 0, '', 0)",
        # The last epoch issued, 0 to 2**32 - 1; no row: none was. At most one row.
        """CREATE TABLE last_epoch (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            epoch INTEGER NOT NULL CHECK (epoch BETWEEN 0 AND 4294967295)
        )""",
        # Jobs that have not ended.
        """CREATE TABLE jobs (
            number INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL CHECK (state IN ('joining', 'starting', 'running', 'leaving')),
            epoch INTEGER NOT NULL,
            world_size INTEGER NOT NULL,
            first_slot INTEGER NOT NULL,
            slots INTEGER NOT NULL,
            reserved_slots INTEGER NOT NULL,
            tenant TEXT NOT NULL,
            priority INTEGER NOT NULL,
            window_packets INTEGER NOT NULL,
            created_unix_s REAL NOT NULL,
            token_hash BLOB NOT NULL,
            key_seed BLOB NOT NULL
        )""",
        # Their workers. here: has not left; a started job keeps the endpoints of those that have.
        """CREATE TABLE members (
            job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
            rank INTEGER NOT NULL,
            address TEXT NOT NULL,
            udp_port INTEGER NOT NULL,
            switch_port INTEGER NOT NULL,
            mac INTEGER,
            here INTEGER NOT NULL CHECK (here IN (0, 1)),
            PRIMARY KEY (job, rank)
        ) WITHOUT ROWID""",
    ),
    # Where a worker listens for results by IP multicast; NULL: it wants results of its own.
    ("ALTER TABLE members ADD COLUMN results_group TEXT",),
)


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Brings the file to the newest version, in one transaction.

    Raises :class:`StoreError`: another program's file, or a newer ina's.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION_ID and (application or version or tables):
            raise StoreError(f"store {path}: this SQLite file belongs to another program")
        if version > len(MIGRATIONS):
            raise StoreError(
                f"store {path}: version {version} was made by a newer ina (this one knows"
                f" {len(MIGRATIONS)})"
            )
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
