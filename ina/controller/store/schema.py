"""The tables, in SQLite's words. A store of another version is refused: none was ever released."""

from __future__ import annotations

APPLICATION_ID = 0x696E6163
"""Marks the file as a controller's ("inac"), for SQLite and for ``file``; PostgreSQL's lock."""

VERSION = 14
"""Of what is below, and of what the JSON in it says. It goes up with each change of either."""

TABLES = (
    # Who may write: the controller that claimed last. One row. switch_addr: where workers reach its
    # switches, with ", " between them; empty: not known.
    """CREATE TABLE claim (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        generation INTEGER NOT NULL,
        holder TEXT NOT NULL,
        claimed_unix_s REAL NOT NULL,
        switch_addr TEXT NOT NULL
    )""",
    "INSERT INTO claim VALUES (1, 0, '', 0, '')",
    # The last epoch issued, 0 to 2**32 - 1; no row: none was. At most one row.
    """CREATE TABLE last_epoch (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        epoch INTEGER NOT NULL CHECK (epoch BETWEEN 0 AND 4294967295)
    )""",
    # Jobs that have not ended. job: store.rows.JobRow in JSON.
    """CREATE TABLE jobs (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        state TEXT NOT NULL CHECK (state IN ('joining', 'starting', 'running', 'leaving')),
        job TEXT NOT NULL
    )""",
    # Their workers. here: has not left; a started job keeps the endpoints of those that have.
    # endpoint: in JSON. submitted, finished: how far one had come that has left, the last operation
    # it has begun, and the last of those it has had all results of; NULL: it did not say.
    """CREATE TABLE members (
        job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
        rank INTEGER NOT NULL,
        here INTEGER NOT NULL CHECK (here IN (0, 1)),
        endpoint TEXT NOT NULL,
        submitted INTEGER,
        finished INTEGER,
        PRIMARY KEY (job, rank)
    ) WITHOUT ROWID""",
    # Links ("leaf1-spine1") and switches of the fabric that somebody has said are down.
    "CREATE TABLE down (name TEXT PRIMARY KEY)",
    # The controllers of this store, and by key digests of their configurations, in JSON.
    """CREATE TABLE controllers (
        name TEXT PRIMARY KEY,
        digests TEXT NOT NULL,
        seen_unix_s REAL NOT NULL
    )""",
)


def in_postgres(statement: str) -> str:
    """The same statement in PostgreSQL's words."""
    for ours, theirs in _POSTGRES:
        statement = statement.replace(ours, theirs)
    return statement


_POSTGRES = (("INTEGER", "BIGINT"), ("REAL", "DOUBLE PRECISION"), (" WITHOUT ROWID", ""))
