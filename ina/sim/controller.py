"""A controller's process in the virtual network: the shipped one, started, killed, started again.

What it is made of (:class:`~ina.controller.service.supervisor.Supervisor` and all below it) is what
ships. Around it are virtual time, messages that travel, and a store that outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from ina.controller import faults
from ina.controller.config import Config
from ina.controller.errors import StoreError
from ina.controller.job import Job
from ina.controller.service.supervisor import Supervisor
from ina.controller.service.term import Term
from ina.controller.store import Store
from ina.controller.store.interface import Database, Transaction
from ina.controller.surroundings import Surroundings
from ina.sim.agent import SwitchAgent
from ina.sim.errors import CrashedError, ScenarioError
from ina.sim.loop import VirtualLoop
from ina.sim.messages import ControlLog, Path
from ina.sim.process import Killed, Process, current
from ina.sim.rpc import Server
from ina.sim.southbound import Southbound
from ina.tables.errors import SwitchError

START_UNIX_S = 1_767_225_600
"""2026-01-01T00:00:00Z: when virtual time begins, by the clock that people read."""
RESTART_S = 1.0
"""A service manager's pause before it starts a controller again that has ended."""


class SimController:
    """One controller's place: at most one process at a time. See :class:`ControlPlane`."""

    def __init__(
        self, name: str, loop: VirtualLoop, config: Config, database: Database, server: Server,
        agents: Mapping[str, SwitchAgent], paths: Mapping[str, Path], log: ControlLog, seed: int,
    ) -> None:  # fmt: skip
        """``paths``: to its switches, by their names."""
        self.name = name
        self.server = server
        self.supervisor: Supervisor | None = None
        """Of the process that runs, or ran last."""
        self.starts = 0
        self.killed_at = ""
        """The fault point at which it was killed last."""
        self.away_s = RESTART_S
        """How long it stays away when it has ended next."""
        self._loop = loop
        self._config = config
        self._database = database
        self._agents = agents
        self._paths = paths
        self._log = log
        self._seed = seed
        self._process: Process | None = None
        self._fatal_points: dict[str, int] = {}

    @property
    def is_up(self) -> bool:
        """Whether its process runs; it may have no role yet."""
        return self._process is not None and not self._process.is_dead

    @property
    def is_primary(self) -> bool:
        """Whether it answers calls."""
        return self.is_up and self.supervisor is not None and self.supervisor.term is not None

    @property
    def agrees(self) -> bool:
        """Whether it is primary, and every switch has what its store says."""
        if not self.is_primary or self.supervisor is None:
            return False
        return all(link.agrees and link.is_ours for link in self.supervisor.links.values())

    def jobs(self) -> list[Job]:
        """By number; none while it is not primary."""
        if not self.is_primary or self.supervisor is None or self.supervisor.term is None:
            return []
        return self.supervisor.term.coordinator.jobs()

    async def start(self) -> None:
        """Starts a process; returns when it has taken a role, and goes on by itself.

        Raises what :meth:`Supervisor.start` raises, after which the process has ended, and
        :class:`CrashedError`: it was killed meanwhile.
        """
        if self.is_up:
            raise ScenarioError(f"controller {self.name}: it runs already")
        self.starts += 1
        process = self._process = _ControllerProcess(f"{self.name}#{self.starts}", self)
        self._log.write(f"{process.name} starts")
        task = process.spawn(self._begin(process))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if process.is_dead:
            raise CrashedError(f"controller {process.name} was killed: {self.killed_at}")
        try:
            task.result()
        except BaseException:
            self.kill()
            raise

    async def keep(self) -> None:
        """Starts it again whenever it has ended, :attr:`away_s` later, for ever."""
        while True:
            if not self.is_up:
                with contextlib.suppress(CrashedError, SwitchError, StoreError):
                    await self.start()
            process = self._process
            if process is not None and not process.is_dead:
                died = asyncio.Event()
                process.at_death(died.set)
                await died.wait()
            away_s, self.away_s = self.away_s, RESTART_S
            await asyncio.sleep(away_s)

    async def stop(self) -> None:
        """An orderly end, as by SIGTERM."""
        process, supervisor = self._process, self.supervisor
        if process is not None and not process.is_dead and supervisor is not None:
            await asyncio.wait([process.spawn(supervisor.close())])
            self.kill()

    def reload(self, change: Callable[[Config], Config]) -> None:
        """Its file is another from now on, and it reads it if it runs, as by SIGHUP."""
        self._config = change(self._config)
        if self.is_up and self.supervisor is not None:
            self.supervisor.reconfigure(self._config)

    async def evict(self, job: str, reason: str) -> None:
        """An operator's order, given at its machine.

        Raises what the coordinator's ``evict`` raises, and :class:`CrashedError`.
        """
        await self._order(lambda term: term.coordinator.evict(job, reason))

    async def resize(self, job: str, slots: int, mode: str = "") -> None:
        """Likewise: begins to give a running job another number of slots, or another mode.

        Raises what :meth:`Changes.resize` raises, and :class:`CrashedError`.
        """
        await self._order(
            lambda term: term.coordinator.changes.resize(job, slots, "asked for", mode=mode)
        )

    async def take_out(self, name: str, *, is_down: bool) -> None:
        """Likewise: a link or a switch is down, or is not any more."""

        async def put(term: Term) -> None:
            if not term.registry.placement.is_known_early:
                term.outages.put(name, is_down=is_down)

        await self._order(put)

    async def _order(self, order: Callable[[Term], Coroutine[Any, Any, object]]) -> None:
        process, supervisor = self._process, self.supervisor
        if process is None or process.is_dead or supervisor is None or supervisor.term is None:
            raise ScenarioError(f"controller {self.name}: it is not primary")
        task = process.spawn(order(supervisor.term))
        await asyncio.wait([task])
        if process.is_dead:
            raise CrashedError(f"controller {process.name} was killed")
        task.result()

    def kill(self) -> None:
        """``kill -9``. Idempotent."""
        if self._process is not None and not self._process.is_dead:
            self._log.write(f"{self._process.name} dies")
            self._process.kill()

    def kill_at(self, point: str, times: int = 1) -> None:
        """Kills it when it gets to a point of :data:`faults.POINTS`, for the ``times``-th time."""
        if point not in faults.POINTS:
            raise ScenarioError(f"controller {self.name}: there is no fault point {point!r}")
        self._fatal_points[point] = times

    def spare(self) -> None:
        """Undoes :meth:`kill_at`."""
        self._fatal_points.clear()

    def reaches(self, point: str) -> None:
        """Its process is at ``point``. Raises :class:`Killed` if that is the end."""
        left = self._fatal_points.get(point)
        if left is None:
            return
        if left > 1:
            self._fatal_points[point] = left - 1
            return
        del self._fatal_points[point]
        self.killed_at = point
        self._log.write(f"{self.name} is at {point}")
        self.kill()
        raise Killed(point)

    async def _begin(self, process: Process) -> None:
        chance = random.Random(f"{self._seed} {process.name}")
        store = Store(_ProcessDatabase(process, self._database), self._unix_s)
        supervisor = Supervisor(
            self._config,
            store,
            Surroundings(
                monotonic_s=self._loop.time,
                unix_s=self._unix_s,
                uniform=chance.uniform,
                token_bytes=chance.randbytes,
                compute=_at_once,
                name=process.name,
            ),
            Southbound(process, self._agents, self._paths),
        )
        self.supervisor = supervisor
        await supervisor.start()
        self.server.listen(process, supervisor.switchboard)

    def _unix_s(self) -> float:
        return START_UNIX_S + self._loop.time()


class _ControllerProcess(Process):
    def __init__(self, name: str, controller: SimController) -> None:
        super().__init__(name)
        self.controller = controller


class _ProcessDatabase:
    """A process's hold on a database, which outlives it. See :class:`Database`."""

    def __init__(self, process: Process, database: Database) -> None:
        self.name = database.name
        self.claim_lock = database.claim_lock
        self._process = process
        self._database = database

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self._process.check()
        with self._database.transaction() as transaction:
            yield transaction

    def version(self, db: Transaction) -> int:
        return self._database.version(db)

    def check_rights(self, db: Transaction) -> None:
        self._database.check_rights(db)

    def create(self) -> None:
        self._process.check()
        self._database.create()

    def renew(self) -> None:
        self._process.check()

    def close(self) -> None:
        """It stays open for the next process."""


def observe(point: str) -> None:
    """To be :data:`faults.observer`: tells the controller whose task is at the point."""
    process = current()
    if isinstance(process, _ControllerProcess):
        process.controller.reaches(point)


async def _at_once(work: Callable[[], Any]) -> Any:
    """Computing takes no virtual time."""
    return work()
