"""How a session's worker behaves, whatever mapping of the job it works by."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from ina.congestion import Choice, Congestion, CongestionError, WindowError
from ina.extension.host import Framing, RtoLimits, WorkerConfig
from ina.host.member.join_link import JoinLink
from ina.host.options import WorkerOptions
from ina.host.ticket import Ticket
from ina.host.windows import Windows
from ina.protocol.peer import Peer

_M = TypeVar("_M", bound="Manner")


@dataclass(frozen=True)
class Manner:
    """As the session was asked to."""

    stall_timeout_ns: int
    rto: RtoLimits
    keep_results: bool
    congestion: Congestion | None  # None: as the controller says
    leads_to: Peer  # the node that the link leads to
    framing: Framing = field(default_factory=Framing)  # of the link's packets
    windows: Windows = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", Windows(self.congestion))

    @classmethod
    def of(cls: type[_M], options: WorkerOptions, ticket: Ticket, link: JoinLink) -> _M:
        """As `options` say, over `link`; `ticket`: the one that it joined with."""
        return cls(
            stall_timeout_ns=int(options.op_timeout_s * 1e9),
            rto=link.rto,
            keep_results=options.recoverable,
            congestion=options.congestion,
            leads_to=link.leads_to or ticket.switch,
            framing=link.framing,
        )

    def config(self, ticket: Ticket) -> WorkerConfig:
        """What the core is told."""
        config = ticket.worker_config(
            stall_timeout_ns=self.stall_timeout_ns,
            rto=self.rto,
            keep_results=self.keep_results,
            leads_to=self.leads_to,
        )
        config.framing = self.framing
        return config

    def choice(self, ticket: Ticket) -> Choice:
        """How many packets are in flight. Raises CongestionError.

        A class of Python's is used only where this worker asked for it: whoever controls jobs must
        not make their workers import code.
        """
        congestion = self.windows.of(ticket.congestion)
        if self._own is not None:
            return self._own
        if congestion.is_own:
            raise CongestionError(
                f"job {ticket.job_name!r} rank {ticket.rank}: the controller asks for"
                f" {congestion.algorithm!r}, a class of Python's, and a worker imports none"
                " that it did not ask for itself: WorkerOptions(congestion=...) or INA_WINDOW"
            )
        return congestion.choice()

    def window_error(self) -> WindowError | None:
        """How a window of Python's has failed; None: it has not, or is none."""
        own = None if self._own is None else self._own.own
        error: WindowError | None = None if own is None else own.error
        return error

    @cached_property
    def _own(self) -> Choice | None:
        return None if self.congestion is None else self.congestion.choice()
