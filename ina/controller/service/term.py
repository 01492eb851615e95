"""One period in which this controller is primary: everything that is made from the store anew."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from ina.controller.config import Config, network_of
from ina.controller.config.tofino import PortRef, pipe_of
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.epochs import EpochCounter
from ina.controller.jobs.registry import Registry, one_pipe
from ina.controller.memory import memory_policy
from ina.controller.service.operators import OperatorService
from ina.controller.service.workers import DataPath, WorkerService
from ina.controller.store import Claim
from ina.controller.switches.plan import MARK_JOB
from ina.controller.switches.southbound.interface import SwitchSession
from ina.controller.switches.writer import SwitchWriter
from ina.controller.watch.failure_detector import FailureDetector
from ina.p4 import names


class Term:
    """The registry, the coordinator and the services, until :meth:`end`."""

    def __init__(
        self,
        config: Config,
        claim: Claim,
        writer: SwitchWriter,
        unreachable_s: Callable[[], float],
    ) -> None:
        """Takes over the jobs in the store. Raises :class:`StoreError`, :class:`SwitchError`.

        ``unreachable_s``: for how long the switch could not be reached; 0: it can.
        """
        store = claim.store
        self.claim = claim
        self.writer = writer
        self.registry = Registry(
            memory_policy(config.jobs, names.SLOTS_TOTAL),
            EpochCounter(store.last_epoch() or 0),
            range(MARK_JOB + 1, names.JOBS_TOTAL),
            unjoined_s=config.jobs.unjoined_s,
            admission=admission_of(config),
            max_window=config.switch.window_limit,
            pipe_of=pipe_of if config.switch.is_tofino else one_pipe,
        )
        self.coordinator = Coordinator(self.registry, writer, claim)
        self.detector = FailureDetector(
            self.coordinator,
            config.jobs.lease_s,
            loss_s=config.switch.loss_s,
            unreachable_s=unreachable_s,
        )
        self.controller = WorkerService(
            self.coordinator, self.detector, _data_path(config, writer.session)
        )
        self.operator = OperatorService(self.coordinator, self.detector, writer, program_of(config))
        self._undo = contextlib.AsyncExitStack()

    async def begin(self, *, fresh: bool) -> None:
        """Takes over the store's jobs and makes the switch agree; ``fresh``: its pipeline is new.

        Raises :class:`StoreError`, :class:`SwitchError`.
        """
        self.coordinator.restore(self.claim.store.load(time.monotonic()))
        await self.coordinator.reconcile(fresh=fresh)
        self.detector.start()
        self._undo.push_async_callback(self.detector.close)

    async def end(self, why: str) -> None:
        """Ends all calls under way; the switch keeps its entries. ``why`` is told to callers."""
        await self._undo.aclose()
        await self.coordinator.close(why)


def admission_of(config: Config) -> Admission:
    """The rules of a configuration."""
    return Admission(config.tenants, preempt=config.jobs.preempt)


def program_of(config: Config) -> str:
    """The P4 program and its build, for people."""
    return f"{names.PROGRAM}, {config.switch.values} values a packet"


def _data_path(config: Config, session: SwitchSession) -> DataPath:
    """Raises :class:`SwitchError`: the switch has no port of a configured name."""
    switch = config.switch

    def number(port: PortRef) -> int:
        return port if isinstance(port, int) else session.port_number(port)

    return DataPath(
        switch.data_host,
        switch.data_udp_port,
        switch.values,
        number(switch.data_port),
        {address: (number(port), mac) for address, (port, mac) in config.endpoints().items()},
        switch.data_shm,
        network_of(switch.multicast),
    )
