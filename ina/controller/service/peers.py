"""Whether the controllers of a store are configured alike: a standby decides by its own file when
it takes over, and SIGHUP reaches one of them alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator

from ina.controller.config import Config
from ina.controller.config.reload import differences, digests
from ina.controller.retry import wait_for
from ina.controller.service.supervisor import Supervisor
from ina.controller.store import open_database
from ina.controller.store.interface import Transaction
from ina.controller.store.rows import (
    Candidate,
    get_candidates,
    holder,
    put_candidate,
    remove_candidate,
)
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

LOOK_S = 10.0
"""So often each says how it is configured, and looks at the others."""
GONE_S = 60.0
"""Who has said nothing for so long is not there."""


class Peers:
    """Writes about this controller into the store, and tells where others differ.

    With a connection of its own, in a thread: a store that does not answer holds up nobody.
    """

    def __init__(self, config: Config, supervisor: Supervisor) -> None:
        self._url = config.store.location
        self._digests = digests(config)
        self._supervisor = supervisor
        self._name, self._unix_s = supervisor.around.name, supervisor.around.unix_s
        self._kick = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._is_closed = False  # a look that was given up may still be under way, in its thread
        self._former: Candidate | None = None
        """Who was primary at the last look, but for this controller."""
        self._told: dict[str, tuple[str, ...]] = {}
        self._trouble = ""

    def start(self) -> None:
        """From now on, until :meth:`close`."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Takes back what it has said."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(InaError):
            await asyncio.to_thread(self._take_back)

    def reconfigure(self, config: Config) -> None:
        """From now on it is configured so."""
        self._digests = digests(config)
        self._kick.set()

    async def look(self) -> None:
        """Says how it is configured, and looks at the others. Raises :class:`StoreError`."""
        own = Candidate(self._name, self._digests, self._unix_s())
        others, primary = await asyncio.to_thread(self._exchange, own)
        if primary == self._name and self._former is not None:
            self._tell_of_former(self._former)
        known = {it.name: it for it in others}
        self._former = known.get(primary, self._former) if primary != self._name else None
        there = [it for it in others if own.seen_unix_s - it.seen_unix_s < GONE_S]
        found = {it.name: differences(own.digests, it.digests) for it in there}
        self._supervisor.differs = [
            pb2.ConfigDifference(controller=name, keys=keys) for name, keys in found.items() if keys
        ]
        self._tell({name: tuple(keys) for name, keys in found.items()})

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
                self._trouble = ""
            except InaError as error:  # whoever needs the store says so, too
                if str(error) != self._trouble:
                    _log.debug("how controllers are configured: %s", error)
                self._trouble = str(error)
            except Exception:  # a bug, which must not end the rest
                _log.exception("how controllers are configured")
            self._kick.clear()
            await wait_for(self._kick, LOOK_S)

    def _exchange(self, own: Candidate) -> tuple[list[Candidate], str]:
        """What the others have said, and which is primary."""
        with self._lock, self._transaction() as db:
            if self._is_closed:
                return [], ""
            found = [it for it in get_candidates(db) if it.name != own.name]
            put_candidate(db, own, own.seen_unix_s - GONE_S)
            return found, holder(db)

    def _take_back(self) -> None:
        with self._lock, self._transaction() as db:
            self._is_closed = True
            remove_candidate(db, self._name)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        database = open_database(self._url, create=False)
        with contextlib.closing(database), database.transaction() as db:
            yield db

    def _tell(self, found: dict[str, tuple[str, ...]]) -> None:
        for name, keys in found.items():
            if keys == self._told.get(name, ()):
                continue
            if keys:
                _log.warning(
                    "%s is configured otherwise than this controller: %s; whichever is primary goes"
                    " by its own file: make them the same, and send SIGHUP to both, or restart",
                    *(name, ", ".join(keys)),
                )
            else:
                _log.info("%s is configured as this controller is", name)
        self._told = found

    def _tell_of_former(self, former: Candidate) -> None:
        if keys := differences(self._digests, former.digests):
            _log.warning(
                "took over from %s with another configuration: %s; from now on what this"
                " controller's file says of it holds",
                *(former.name, ", ".join(keys)),
            )
