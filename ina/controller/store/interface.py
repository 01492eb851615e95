"""What the store needs of a database: SQLite's file and PostgreSQL's server behind one interface.

SQL is written once, in what both understand, with ``?`` for values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ina.controller.errors import StoreError
from ina.controller.store.schema import VERSION


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
        """Of its schema; 0: there is nothing yet.

        Raises :class:`StoreError`: it is another program's.
        """
        ...

    def check_rights(self, db: Transaction) -> None:
        """Raises :class:`StoreError`: this user may not change its tables, or make them."""
        ...

    def create(self) -> None:
        """Makes the tables where there are none. Leaves those of another version, and raises."""
        ...

    def renew(self) -> None:
        """Connects anew, where there is a connection that may have died meanwhile."""
        ...

    def close(self) -> None:
        """May be called again."""
        ...


def check_version(name: str, version: int) -> None:
    """Raises :class:`StoreError`: another ina has made it."""
    if version not in (0, VERSION):
        raise StoreError(
            f"store {name}: its schema is {version}, and this ina's is {VERSION}: let the ina that"
            " made it end its jobs, then remove the store or name another one"
        )
