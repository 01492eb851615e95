"""One process's part in one job: meets the others, joins, has flat tensors summed, leaves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

import torch
from torch._C._distributed_c10d import Store

from ina.errors import InaError
from ina.host import Session, SessionStats
from ina.host.errors import SessionFrozenError
from ina.torch import host_node, rendezvous
from ina.torch.aggregator import LocalAggregator
from ina.torch.env import Settings
from ina.torch.errors import GroupClosedError
from ina.torch.fallback import Fallback, SwitchLoss
from ina.torch.host_node import LocalNode
from ina.torch.paths import VALUE_TYPES
from ina.torch.rendezvous import Rendezvous

_JOIN_TIMEOUT_S = 120.0
"""Upper bound of the wait for the other workers; the group's own timeout may be shorter."""

_CRASH_LEAVE_TIMEOUT_S = 1.0
"""After an uncaught exception the others do not leave in good order: hardly wait for them."""


class Sum(Protocol):
    """A sum that is under way."""

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        """Call ``function(self)`` from another thread once it has ended, or now if it has."""

    def done(self) -> bool:
        """Return whether it has ended, well or not."""

    def wait(self) -> object:
        """Return once the sum is there; raise the error if it failed."""


class Worker:
    """Used by the process group and by whoever has a group of another backend."""

    def __init__(
        self,
        store: Store,
        rank: int,
        ranks: Sequence[int],
        timeout: timedelta,
        *,
        name: str,
        sub_group: bool,
        settings: Settings,
    ) -> None:
        """Blocks until all are there.

        Args:
            store: of the group; keys that begin with ``ina/`` are this class's.
            rank: in the group.
            ranks: global ones, of the whole group.
            timeout: of joining, and of each sum: how long no part of it may arrive.
            name: the group's, for messages; part of the job's name where ``sub_group``.
            sub_group: whether it is another group than the default one.
            settings: of this process.

        Raises :class:`~ina.torch.errors.RendezvousError` if there is no switch, and what
        :meth:`ina.host.Session.join` raises.
        """
        join_timeout_s = min(timeout.total_seconds(), _JOIN_TIMEOUT_S)
        self._closing = threading.Lock()
        self._closed = False
        self._fallback: Fallback | None = None
        self.rendezvous: Rendezvous = rendezvous.meet(
            store, ranks, rank, name if sub_group else "", settings, join_timeout_s
        )
        host = self.rendezvous.embedded_with
        self._node: LocalNode | None = None
        self._aggregator = LocalAggregator(settings.leave_timeout_s) if rank == 0 else None
        try:
            self._node = host_node.find(store, rank, len(ranks), settings, join_timeout_s)
            if settings.on_switch_loss == "fallback":
                self._fallback = Fallback(store, rank, len(ranks), timeout, name)
            self._session = Session.join(
                self.rendezvous.controller,
                self.rendezvous.job,
                rank,
                len(ranks),
                timeout_s=join_timeout_s,
                host=settings.host,
                token=settings.token,
                tenant=settings.tenant,
                priority=settings.priority,
                mode=settings.mode,
                transport=settings.transport,
                congestion=settings.congestion,
                dscp=settings.dscp,
                verify=settings.verify,
                threads=settings.threads,
                local_workers=settings.local_workers or len(ranks),
                op_timeout_s=timeout.total_seconds(),
                controller_with_rank=ranks.index(host) if host in ranks else None,
                recoverable=self._fallback is not None,
                on_failure=self._fallback.on_failure if self._fallback is not None else None,
                node=self._node,
                wishes=settings.wishes,
                aggregator=self._aggregator,
            )
        except BaseException:
            if self._fallback is not None:
                self._fallback.close(0.0)
            self._close_nodes(0.0)
            rendezvous.part(self.rendezvous, 0.0)
            raise
        if self._fallback is not None:
            self._fallback.watch(self._session)

    def submit(self, tensor: torch.Tensor, op: str) -> Sum:
        """Start the sum, or average, of a tensor over all ranks, in place.

        ``tensor``: contiguous, in CPU memory, any shape, a dtype that the network sums; it must not
        be touched before the end. ``op``: "sum" or "avg". All ranks submit the same in the same
        order. What fails is raised by the result's ``wait``.
        """
        if self._fallback is not None and self._fallback.loss is not None:
            return self._fallback.submit(tensor, op == "avg")
        try:
            return self._session.all_reduce_raw(
                tensor.data_ptr(),
                tensor.data_ptr(),
                tensor.numel(),
                VALUE_TYPES[tensor.dtype],
                op,
                keep=tensor,
            )
        except SessionFrozenError:
            assert self._fallback is not None, "only the fallback freezes"
            return self._fallback.submit(tensor, op == "avg")

    @property
    def switch_loss(self) -> SwitchLoss | None:
        """How the group came to go on over Gloo; None: it has not."""
        return None if self._fallback is None else self._fallback.loss

    @property
    def values_per_packet(self) -> int:
        """Elements of a block: those that share an exponent."""
        return self._session.ticket.values_per_packet

    @property
    def path(self) -> str:
        """How this worker reaches the switch: "shared memory" or "UDP host:port"."""
        return self._session.path

    def stats(self) -> SessionStats:
        """What the session counted."""
        return self._session.stats()

    def fail(self, error: InaError) -> None:
        """End all that is under way, and all that comes, with ``error``."""
        if self._fallback is not None:
            self._fallback.fail(error)
        self._session.fail(error)

    def close(self, leave_timeout_s: float) -> None:
        """Leave the job; wait at most so long for other ranks that still need this process.

        A second call does nothing.
        """
        with self._closing:
            closed, self._closed = self._closed, True
        if closed:
            return
        if getattr(sys, "last_value", None) is not None:
            leave_timeout_s = min(leave_timeout_s, _CRASH_LEAVE_TIMEOUT_S)
        try:
            if self._fallback is not None:
                self._fallback.close(leave_timeout_s)
            if self._aggregator is not None:
                self._aggregator.patience_s = leave_timeout_s
            self._session.close()
        finally:
            self._close_nodes(leave_timeout_s)
            rendezvous.part(self.rendezvous, leave_timeout_s)

    def _close_nodes(self, leave_timeout_s: float) -> None:
        if self._aggregator is not None:
            self._aggregator.close()
        if self._node is not None:
            self._node.close(leave_timeout_s)

    def abort(self, what: str) -> None:
        """Leave at once: what is under way ends with a :class:`GroupClosedError` that says so."""
        self.fail(GroupClosedError(f"{what}: it has been aborted"))
        self.close(0.0)
