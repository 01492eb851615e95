"""What the store needs of a database: SQLite's file and PostgreSQL's server behind one interface.

SQL is written once, in what both understand, with ``?`` for values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ina.controller.errors import StoreError


class Rows(Protocol):
    """What a statement has found."""

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """All of it happens, or nothing. One at a time: another's waits until this one has ended."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Runs one statement."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Runs a statement for each row of values."""
        ...


class Database(Protocol):
    """One open database. Whatever goes wrong with it is a :class:`StoreError`."""

    name: str
    """For people: path or URL, without a password."""
    claim_lock: str
    """Behind ``SELECT ... FROM claim``, so that nobody else changes the claim until the end."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commits when the block ends, rolls back when it raises. It has a deadline."""
        ...

    def version(self, db: Transaction) -> int:
        """How many migrations were applied; 0: there is nothing yet.

        Raises :class:`StoreError`: it is another program's.
        """
        ...

    def check_rights(self, db: Transaction) -> None:
        """Raises :class:`StoreError`: this user may not change its tables, or make them."""
        ...

    def migrate(self) -> None:
        """Brings the schema to the newest version, or leaves it and raises."""
        ...

    def renew(self) -> None:
        """Connects anew, where there is a connection that may have died meanwhile."""
        ...

    def close(self) -> None:
        """May be called again."""
        ...


def check_version(name: str, version: int, known: int) -> None:
    """Raises :class:`StoreError`: a newer ina has made it."""
    if version > known:
        raise StoreError(
            f"store {name}: version {version} was made by a newer ina (this one knows {known})"
        )
