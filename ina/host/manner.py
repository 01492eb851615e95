"""How a session's worker behaves, whatever mapping of the job it works by."""

from __future__ import annotations

from dataclasses import dataclass

from ina.congestion import Choice, Congestion
from ina.extension.host import RtoLimits, WorkerConfig
from ina.host.ticket import Ticket


@dataclass(frozen=True)
class Manner:
    """As the session was asked to."""

    stall_timeout_ns: int
    rto: RtoLimits
    keep_results: bool
    congestion: Congestion | None  # None: as the controller says
    leads_to: tuple[str, int]  # IPv4 address and UDP port that the link leads to

    def config(self, ticket: Ticket) -> WorkerConfig:
        """What the core is told."""
        return ticket.worker_config(
            stall_timeout_ns=self.stall_timeout_ns,
            rto=self.rto,
            keep_results=self.keep_results,
            leads_to=self.leads_to,
        )

    def choice(self, ticket: Ticket) -> Choice:
        """How many packets are in flight."""
        return (self.congestion or ticket.congestion).choice()
