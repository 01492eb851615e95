"""One process's part in one job: meets the others, joins, has flat tensors summed, leaves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

import torch
from torch._C._distributed_c10d import Store

from ina.errors import InaError
from ina.host import Session, SessionStats, turns
from ina.host.arrays import Array
from ina.host.errors import SessionClosedError, SessionFrozenError
from ina.host.member.latch import OnFailure
from ina.host.sparse import BlockStream, BlockSums
from ina.host.stop import Stop
from ina.protocol.coding import Coding, checked_coding
from ina.protocol.collective import Collective, Reduction
from ina.torch import host_node, rendezvous
from ina.torch.env import Settings
from ina.torch.errors import GroupClosedError
from ina.torch.fallback import Fallback, SwitchLoss
from ina.torch.host_node import LocalNode
from ina.torch.paths import collective_of
from ina.torch.rendezvous import Rendezvous
from ina.torch.seat import Seat
from ina.torch.views import as_tensor

_JOIN_TIMEOUT_S = 120.0
"""Upper bound of the wait for the other workers; the group's own timeout may be shorter."""

_CRASH_LEAVE_TIMEOUT_S = 1.0
"""After an uncaught exception the others do not leave in good order: hardly wait for them."""


_LEAVE_S = 5.0
"""Of a former incarnation: how long its nodes wait for ranks that have not left it."""


Sum = turns.Sum[object]
"""A sum that is under way, or that waits for its turn."""
Sent = Callable[[bool], object]
"""Hears of a sum whether it goes over the network, once that is known."""


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
        self._rank, self._ranks, self._timeout, self._settings = rank, ranks, timeout, settings
        self._name = name
        self._node: LocalNode | None = None
        self._next: Seat | None = None
        """Joined, while sums still go over Gloo."""
        self._turns = turns.Turns()
        self._former: SessionStats | None = None
        """What sessions counted that were left."""
        try:
            self._node = host_node.find(store, rank, len(ranks), settings, join_timeout_s)
            if settings.on_switch_loss == "fallback":
                returns = settings.returns
                self._fallback = Fallback(store, rank, len(ranks), timeout, name, returns=returns)
            on_failure = self._fallback.on_failure if self._fallback is not None else None
            self._seat = self._join(self._node, on_failure, join_timeout_s)
        except BaseException:
            if self._fallback is not None:
                self._fallback.close(0.0)
            rendezvous.part(self.rendezvous, 0.0)
            raise
        if self._fallback is not None:
            self._fallback.watch(self._session, _Seats(self))

    @property
    def _session(self) -> Session:
        return self._seat.session

    def _join(
        self,
        node: LocalNode | None,
        on_failure: OnFailure | None,
        join_timeout_s: float,
        stop: Stop | None = None,
    ) -> Seat:
        return Seat(
            *(self.rendezvous, self._rank, self._ranks, node, self._settings),
            join_timeout_s=join_timeout_s,
            op_timeout=self._timeout,
            on_failure=on_failure,
            stop=stop,
        )

    def submit(
        self,
        tensor: torch.Tensor,
        op: Reduction,
        coding: Coding | None = None,
        sent: Sent = lambda _: None,
    ) -> Sum:
        """Start the sum, or average, of a tensor over all ranks, in place.

        ``tensor``: contiguous, in CPU memory, any shape, a dtype that the network sums; it must not
        be touched before the end. ``coding``: how its values travel; None: as the job's do. All
        ranks submit the same in the same order. What fails is raised by the result's ``wait``.

        It begins later where sparse sums are before it whose values are not known yet.
        """
        what = collective_of(tensor, op, self.coding if coding is None else coding)
        return self.start(what, tensor, tensor, sent)

    def start(
        self,
        what: Collective,
        source: torch.Tensor,
        target: torch.Tensor,
        sent: Sent = lambda _: None,
    ) -> Sum:
        """Start any collective, of what is in ``source``, whose result comes to ``target``.

        Both: contiguous, in CPU memory, any shape, the same one for all_reduce; not to be touched
        before the end. Of what is moved their bytes count. Else as :meth:`submit`.
        """
        return self._turns.submit(lambda: self._begin(what, source, target, sent))

    def sparse(self, sent: Sent) -> BlockStream:
        """For sums of which only a part is sent, in one order with the others; ``sent`` hears of
        each part of theirs where it goes. Arrays and results as of :meth:`submit`, in place."""

        def begin(source: Array, target: Array, what: Collective) -> Sum:
            assert source.ctypes.data == target.ctypes.data
            tensor = as_tensor(target)
            return self._begin(what, tensor, tensor, sent)

        return BlockSums(self._turns, begin, len(self._ranks)).stream()

    def _begin(
        self, what: Collective, source: torch.Tensor, target: torch.Tensor, sent: Sent
    ) -> Sum:
        if self._fallback is not None and self._fallback.is_away:
            return self._over_gloo(self._fallback, what, source, target, sent)
        try:
            addresses = source.data_ptr(), target.data_ptr()
            one = self._session.submit(*addresses, what, keep=(source, target))
        except (SessionFrozenError, SessionClosedError):  # since it was looked at
            if self._fallback is None or self._closed:
                raise
            return self._over_gloo(self._fallback, what, source, target, sent)
        sent(True)
        return one

    @staticmethod
    def _over_gloo(
        fallback: Fallback,
        what: Collective,
        source: torch.Tensor,
        target: torch.Tensor,
        sent: Sent,
    ) -> Sum:
        one = fallback.submit(what, source, target)
        one.when_sent(sent)
        return one

    @property
    def coding(self) -> Coding:
        """How the job's floats travel where a call does not say."""
        return checked_coding("wire", self._settings.wire)

    @property
    def switch_loss(self) -> SwitchLoss | None:
        """How the group came to go on over Gloo, the last time; None: it never has."""
        return None if self._fallback is None else self._fallback.loss

    @property
    def switch_returns(self) -> int:
        """How often the group has gone back to the network."""
        return 0 if self._fallback is None else self._fallback.returns

    @property
    def values_per_packet(self) -> int:
        """Elements of a block: those that share an exponent."""
        return self._session.ticket.values_per_packet

    @property
    def has_shapes(self) -> bool:
        """See :attr:`ina.host.Ticket.has_shapes`; of its session now."""
        return self._session.ticket.has_shapes

    @property
    def path(self) -> str:
        """How this worker reaches the switch: "shared memory" or "UDP host:port"."""
        return self._session.path

    def stats(self) -> SessionStats:
        """What its sessions counted."""
        stats, former = self._session.stats(), self._former
        return stats if former is None else stats.after(former)

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
        self._turns.end(lambda: GroupClosedError(f"group {self._name}: it has been destroyed"))
        if getattr(sys, "last_value", None) is not None:
            leave_timeout_s = min(leave_timeout_s, _CRASH_LEAVE_TIMEOUT_S)
        try:
            if self._fallback is not None:
                self._fallback.close(leave_timeout_s)
            self._seat.close(leave_timeout_s)
        finally:
            rendezvous.part(self.rendezvous, leave_timeout_s)

    def abort(self, what: str) -> None:
        """Leave at once: what is under way ends with a :class:`GroupClosedError` that says so."""
        self.fail(GroupClosedError(f"{what}: it has been aborted"))
        self.close(0.0)


class _Seats:
    """See :class:`ina.torch.fallback.comeback.Seats`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._number = 0

    def leave(self) -> None:
        self._number += 1
        self._worker._seat.close(_LEAVE_S)

    def join(self, on_failure: OnFailure, stop: Stop, timeout_s: float) -> Session:
        worker = self._worker
        node = None if worker._node is None else worker._node.again(self._number)
        worker._next = worker._join(node, on_failure, timeout_s, stop)
        return worker._next.session

    def give_up(self) -> None:
        joined, self._worker._next = self._worker._next, None
        if joined is not None:
            joined.close(_LEAVE_S)

    def use(self) -> None:
        worker = self._worker
        assert worker._next is not None
        worker._former = worker.stats()
        worker._seat, worker._next = worker._next, None
