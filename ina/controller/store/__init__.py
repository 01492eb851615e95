"""The desired state of one switch, in a database: what must be on it after any restart."""

from __future__ import annotations

from ina.controller.config.store_url import IN_MEMORY, path_of
from ina.controller.store.database import Claim, Store, StoredJob
from ina.controller.store.interface import Database
from ina.controller.store.sqlite import SqliteDatabase

__all__ = ["IN_MEMORY", "Claim", "Store", "StoredJob", "open_store"]


def open_store(url: str) -> Store:
    """Opens a store; :func:`~ina.controller.config.store_url.problem_of` has found its URL right.

    A SQLite file that is not there is created. Raises :class:`~ina.controller.errors.StoreError`,
    and :class:`~ina.errors.MissingToolError`: there is no psycopg.
    """
    return Store(open_database(url))


def open_database(url: str, *, create: bool = True) -> Database:
    """As :func:`open_store`, with the schema as it is; ``create``: a file that is not there."""
    if url == IN_MEMORY or path_of(url) is not None:
        return SqliteDatabase(path_of(url), create=create)
    from ina.controller.store.postgres import PostgresDatabase

    return PostgresDatabase(url)
