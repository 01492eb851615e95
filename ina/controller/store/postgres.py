"""A store on a PostgreSQL server: it outlives the controllers' machines.

Everything is in the schema ``ina`` of one database, of which each switch has its own. Whatever goes
wrong ends the connection; the next transaction makes another. Nothing waits without a deadline: the
server ends what waits for a lock or takes too long, and a transaction that has begun and says
nothing, as of a controller that was stopped; and where the server itself is stopped or cut off, the
connection is hung up from here.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ina.controller.config.store_url import shown
from ina.controller.errors import StoreError
from ina.controller.store.interface import Rows, Transaction, check_version
from ina.controller.store.schema import APPLICATION_ID, TABLES, VERSION, in_postgres
from ina.errors import MissingToolError

if TYPE_CHECKING:
    import psycopg

_log = logging.getLogger(__name__)

STATEMENT_S = 4
"""For one statement, and for a lock that it waits for. Each takes milliseconds."""
TRANSACTION_S = 6.0
"""For a whole transaction, seen from here."""
CONNECT_S = 5
"""To each of the URL's hosts."""
_CONNECTION: dict[str, Any] = {
    "application_name": "ina controller",
    "connect_timeout": CONNECT_S,
    "tcp_user_timeout": int(1000 * TRANSACTION_S),
    "keepalives_idle": 10,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
"""libpq's parameters, where the URL has no others."""
_TABLES = ("claim", "jobs", "last_epoch", "members")
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_CREATE = "current_database(), 'CREATE'"
_SETTINGS = (
    f"SET statement_timeout = '{STATEMENT_S}s'",
    f"SET lock_timeout = '{STATEMENT_S}s'",
    f"SET idle_in_transaction_session_timeout = '{STATEMENT_S}s'",
    "SET synchronous_commit = on",  # what was answered survives a crash of the server
    "SET default_transaction_isolation = 'read committed'",  # who waited for a lock sees what is
    "SET search_path = ina",
)


class PostgresDatabase:
    """One connection, made anew where it was lost. See :class:`Database`."""

    claim_lock = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        """Connects. Raises :class:`MissingToolError`: there is no psycopg."""
        try:
            import psycopg
        except ImportError as error:
            why = " ".join(str(error).split())
            raise MissingToolError(
                f"store {shown(url)}: needs psycopg: pip install 'psycopg[binary]' ({why})"
            ) from None
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what is raised, too
        self.name = shown(url)
        self._url = url
        self._psycopg = psycopg
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False
        self._warned = False
        self._connect()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """See :class:`Database`. When it raises, it may have been committed or not."""
        connection = self._connection or self._connect()
        with self._deadline(connection), connection.transaction():
            yield _Statements(connection)

    def version(self, db: Transaction) -> int:
        """Kept in a table of its own."""
        (found,) = db.execute("SELECT to_regclass('ina.schema_version')").fetchone()
        if found is not None:
            (version,) = db.execute("SELECT version FROM ina.schema_version").fetchone()
            return int(version)
        (tables,) = db.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('ina')"
        ).fetchone()
        if tables:
            raise StoreError(f"store {self.name}: its schema ina belongs to another program")
        return 0

    def check_rights(self, db: Transaction) -> None:
        """See :class:`Database`."""
        (there,) = db.execute("SELECT to_regnamespace('ina') IS NOT NULL").fetchone()
        what, right = ("schema", "'ina', 'CREATE'") if there else ("database", _CREATE)
        checks = [(f"create tables in its {what}", f"has_{what}_privilege({right})")]
        if self.version(db):
            checks = [
                (f"{right} in the table {table}", f"has_table_privilege('ina.{table}', '{right}')")
                for table in _TABLES
                for right in _RIGHTS
            ]
        for right, check in checks:
            (may,) = db.execute(f"SELECT {check}").fetchone()
            if not may:
                raise StoreError(f"store {self.name}: this user has no right to {right}")

    def create(self) -> None:
        """See :class:`Database`."""
        with self.transaction() as db:
            # Of controllers that start at the same time, one makes the tables.
            db.execute("SELECT pg_advisory_xact_lock(?)", (APPLICATION_ID,))
            version = self.version(db)
            check_version(self.name, version)
            if version:
                return
            (made,) = db.execute("SELECT to_regnamespace('ina') IS NOT NULL").fetchone()
            if not made:  # else by somebody who may
                db.execute("CREATE SCHEMA ina")
            for statement in TABLES:
                db.execute(in_postgres(statement))
            db.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
            db.execute("INSERT INTO schema_version VALUES (?)", (VERSION,))

    def renew(self) -> None:
        """A standby's connection may have died long ago, of a firewall's patience for instance."""
        self._hang_up()
        self._connect()

    def close(self) -> None:
        """See :class:`Database`."""
        self._closed = True
        self._hang_up()

    def _connect(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise StoreError(f"store {self.name}: it is closed")
        try:
            asked = self._psycopg.conninfo.conninfo_to_dict(self._url)
            connection = self._psycopg.connect(
                **{**_CONNECTION, **asked}, autocommit=True, prepare_threshold=None
            )
        except self._psycopg.Error as error:
            raise self._error(error) from None
        try:
            with self._deadline(connection):
                connection.execute("; ".join(_SETTINGS).encode())
        except BaseException:  # never to be used without them
            connection.close()
            raise
        self._connection = connection
        self._warn_of_plain_text(connection)
        return connection

    @contextmanager
    def _deadline(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Hangs up where the block takes too long, or the connection is of no more use."""
        hung_up = threading.Event()
        try:
            with _hung_up_after(TRANSACTION_S, connection.fileno(), hung_up):
                yield
        except self._psycopg.Error as error:
            if connection.broken or isinstance(error, self._psycopg.OperationalError):
                self._hang_up()
            if hung_up.is_set():
                why = f"no answer within {TRANSACTION_S:g} s"
                raise StoreError(f"store {self.name}: {why}") from None
            raise self._error(error) from None

    def _warn_of_plain_text(self, connection: psycopg.Connection[Any]) -> None:
        here = connection.info.host.startswith("/") or connection.info.hostaddr in _LOOPBACK
        if not (here or connection.pgconn.ssl_in_use or self._warned):
            _log.warning("store %s: without TLS: the jobs' secrets cross the network", self.name)
            self._warned = True

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _error(self, error: Exception) -> StoreError:
        diagnosis = getattr(error, "diag", None)
        what = getattr(diagnosis, "message_primary", None) or str(error).strip()
        return StoreError(f"store {self.name}: {what.partition(chr(10))[0]}")  # then come guesses


_LOOPBACK = ("127.0.0.1", "::1")


class _Statements:
    """:class:`Transaction` by psycopg."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """See :class:`Transaction`."""
        return self._connection.execute(_placed(sql), values or None)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """See :class:`Transaction`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_placed(sql), list(rows))


def _placed(sql: str) -> bytes:
    # None of the store's SQL has a question mark of its own.
    return sql.replace("?", "%s").encode()


@contextmanager
def _hung_up_after(seconds: float, fd: int, hung_up: threading.Event) -> Iterator[None]:
    """Shuts the connection of ``fd`` down where the block takes longer: who waits for it fails."""
    # A descriptor of its own: the number may be another file's when the time is over.
    with socket.socket(fileno=os.dup(fd)) as connection:

        def hang_up() -> None:
            hung_up.set()
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, hang_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
