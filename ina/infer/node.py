"""A node of a plan: its sockets, its places in the jobs that sum, and the native service."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from ina.errors import InaError
from ina.extension import infer as native
from ina.host.errors import JobFailedError, WorkerLostError
from ina.host.options import WorkerOptions
from ina.infer.errors import NodeLostError, ServiceError, SumsLostError
from ina.infer.placing import Placed, Surroundings, place, program_of, summed
from ina.infer.plan import InferencePlan
from ina.infer.sums import Summing

_log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Of the entry, without a word of a node that it asks for its progress; of sums twice as long."""
JOIN_S = 60.0
"""For the plan's other nodes to join."""


@dataclass(frozen=True)
class NodeOptions:
    """How a node is run."""

    controller: str = ""
    """Address, "host:port"; needed where stages are summed in the switch."""
    patience_s: float = PATIENCE_S
    join_s: float = JOIN_S
    loss_rate: float = 0.0
    """A share of what it sends to others that is dropped, for tests and demonstrations."""
    loss_seed: int = 0
    most_moments: int = 0
    """So many moments of its first blocks are kept, to see what happened when."""


def open_door(where: Surroundings, node: int, *, is_held: bool = False) -> socket.socket:
    """The node's UDP socket. Raises ServiceError.

    `is_held`: another process of this user has the port, for this one, until all are ready.
    """
    peer = where.peers[node]
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        if is_held:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        door.bind(peer.place)
    except OSError as error:
        door.close()
        raise ServiceError(f"no UDP socket at {peer}: {error.strerror}") from None
    return door


def job_of(plan: InferencePlan, stage: str) -> str:
    """The name of the job that sums a stage's parts."""
    return f"infer-{plan.spec.name}-{plan.digest:08x}-{stage}"


class NodeService:
    """Runs from its making to close(). Use it as a context manager."""

    def __init__(
        self,
        plan: InferencePlan,
        node: int,
        where: Surroundings,
        door: socket.socket,
        options: NodeOptions,
    ) -> None:
        """Take over `door`. Raises PlanError, ServiceError, and what joining a job does."""
        self._plan, self._node = plan, node
        placed = place(plan)
        self._placed = placed
        stages = [k for k in summed(placed) if node in placed[k].needs]
        if stages and not options.controller:
            door.close()
            raise ServiceError(
                f"plan {plan.spec.name!r}: stage {placed[stages[0]].name!r} is summed in a switch:"
                " name the controller"
            )
        self._sums: list[tuple[int, Summing]] = []
        self._service: native.Service | None = None
        try:
            for k in stages:
                self._sums.append((k, self._join(placed[k], options)))
            self._service = self._start(placed, where, door, options)
        except BaseException:
            self.close()
            raise
        finally:
            door.close()  # the service has its own duplicate

    def _join(self, one: Placed, options: NodeOptions) -> Summing:
        members = list(one.needs)
        wanted = WorkerOptions(
            timeout_s=options.join_s,
            op_timeout_s=2 * options.patience_s,
            transport="udp",
            on_failure=lambda error: self._on_lost(members, error),
        )
        job = job_of(self._plan, one.name)
        return Summing.join(
            options.controller, job, members.index(self._node), len(members), wanted
        )

    def _on_lost(self, members: Sequence[int], error: InaError) -> bool:
        """Who is to blame, before the sums end for it."""
        service = self._service
        if service is not None and isinstance(error, WorkerLostError) and error.ranks:
            service.fail(native.Failure(native.Fault.NODE_LOST, members[error.ranks[0]]))
        return False

    def _start(
        self, placed: Sequence[Placed], where: Surroundings, door: socket.socket,
        options: NodeOptions,
    ) -> native.Service:  # fmt: skip
        program = program_of(self._plan, placed, self._node, where)
        entry = native.EntryConfig(patience_ns=round(options.patience_s * 1e9))
        links = [native.StageLink(k, sums.fd, sums.engine) for k, sums in self._sums]
        try:
            return native.Service(
                door.fileno(), program, entry, links,
                loss_rate=options.loss_rate, loss_seed=options.loss_seed,
                most_moments=options.most_moments,
            )  # fmt: skip
        except (ValueError, RuntimeError, OSError) as error:
            raise ServiceError(
                f"plan {self._plan.spec.name!r}, node {self._plan.spec.nodes[self._node]!r}:"
                f" {error}"
            ) from None

    @property
    def service(self) -> native.Service:
        """For counters, traffic and moments."""
        assert self._service is not None, "closed"
        return self._service

    def wait_failed(self, timeout_s: float) -> bool:
        """Whether it has failed by then."""
        return self.service.wait_failed(round(timeout_s * 1e9))

    def error(self) -> InaError | None:
        """Why it does not work any more; None: it does."""
        failure = self.service.failure
        if failure.fault == native.Fault.NONE:
            return None
        whom = f"plan {self._plan.spec.name!r}, node {self._plan.spec.nodes[self._node]!r}"
        said = [error for _, sums in self._sums if (error := sums.error()) is not None]
        why = f": {said[0]}" if said else ""
        names = self._plan.spec.nodes
        if failure.fault == native.Fault.NODE_LOST and failure.node < len(names):
            return NodeLostError(f"{whom}: node {names[failure.node]!r} is lost{why}")
        stage = self._placed[failure.stage].name if failure.stage < len(self._placed) else "?"
        return SumsLostError(f"{whom}: the sums of stage {stage!r} do not come any more{why}")

    def close(self) -> None:
        """Others get no answer any more. Idempotent."""
        if self._service is not None:
            self._service.close()
        # At once: a worker that has left is not waited for by the others of its other jobs.
        threads = [
            threading.Thread(target=_leave, args=(sums,), name="ina-infer-leave")
            for _, sums in self._sums
        ]
        self._sums = []
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def __enter__(self) -> NodeService:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _leave(sums: Summing) -> None:
    try:
        sums.leave()
    except JobFailedError as error:
        _log.debug("%s", error)
