"""A process's place in one incarnation of a job: its session, and what it runs for that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from ina.host import Session, WorkerOptions
from ina.host.member.latch import OnFailure
from ina.host.stop import Stop
from ina.torch.aggregator import LocalAggregator
from ina.torch.env import Settings
from ina.torch.host_node import LocalNode
from ina.torch.rendezvous import Rendezvous


class Seat:
    """Taken when it is made; given back by :meth:`close`."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        rank: int,
        ranks: Sequence[int],
        node: LocalNode | None,
        settings: Settings,
        *,
        join_timeout_s: float,
        op_timeout: timedelta,
        on_failure: OnFailure | None,
        stop: Stop | None = None,
    ) -> None:
        """``node``: closed with it. ``on_failure``: of a session that can be frozen; ``stop``: ends
        the wait. Raises what :meth:`ina.host.Session.join` raises.
        """
        host = rendezvous.embedded_with
        self._node = node
        self._aggregator = LocalAggregator(settings.leave_timeout_s) if rank == 0 else None
        try:
            self.session = Session.join(
                rendezvous.controller,
                rendezvous.job,
                rank,
                len(ranks),
                WorkerOptions(
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
                    wire=settings.wire,
                    threads=settings.threads,
                    local_workers=settings.local_workers or len(ranks),
                    op_timeout_s=op_timeout.total_seconds(),
                    controller_with_rank=ranks.index(host) if host in ranks else None,
                    recoverable=on_failure is not None,
                    on_failure=on_failure,
                    node=node,
                    wishes=settings.wishes,
                    aggregator=self._aggregator,
                    stop=stop,
                ),
            )
        except BaseException:
            self._close_nodes(0.0)
            raise

    def close(self, leave_timeout_s: float) -> None:
        """Leave; wait at most so long for ranks that need what runs here. Idempotent."""
        if self._aggregator is not None:
            self._aggregator.patience_s = leave_timeout_s
        try:
            self.session.close()
        finally:
            self._close_nodes(leave_timeout_s)

    def _close_nodes(self, leave_timeout_s: float) -> None:
        if self._aggregator is not None:
            self._aggregator.close()
        if self._node is not None:
            self._node.close(leave_timeout_s)
