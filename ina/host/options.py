"""How one worker takes part in a job: what it asks of the controller, and how it behaves."""

from __future__ import annotations

from dataclasses import dataclass

from ina.congestion import Congestion
from ina.host import threads as thread_counts
from ina.host.aggregator import OwnAggregator
from ina.host.errors import InvalidTicketError
from ina.host.link import check_transport
from ina.host.member.latch import OnFailure
from ina.host.node import NodeOfHost
from ina.host.rdma import RdmaPatience
from ina.host.stop import Stop
from ina.host.wishes import NO_WISHES, Wishes
from ina.modes.transports import TransportName
from ina.protocol.coding import checked_coding
from ina.protocol.dscp import checked_dscp
from ina.protocol.verify import Verify

MAX_OP_TIMEOUT_S = 1e9  # 31 years; int64 nanoseconds on top of a clock end at nine times that


@dataclass(frozen=True)
class WorkerOptions:
    """All may be left out. Raises InvalidInputError, InvalidTicketError."""

    # Of the job, where all workers ask for the same, or the first one counts.
    slots: int = 0
    """How many to ask for, both versions; 0: the controller's default."""
    mode: str = ""
    """One of ina.modes: ``pool``, slots of its own; ``shared``, slots that jobs share; ``stream``,
    slots of its own, and blocks of zeros are skipped; ``roce`` and ``transparent``, slots of its
    own, over RoCEv2; empty: as others ask, or as the controller's configuration has it."""
    verify: Verify | None = None
    """Of the sums: ``off``, ``accidents`` or ``keyed``; None: as others ask, or as is usual."""
    token: str = ""
    """The job's join token; the first worker's is asked of all others."""
    tenant: str = ""
    """Whose job it is, as the controller's configuration allows; empty: ``default``."""
    priority: int = 0
    """How important it is; higher wins."""
    wishes: Wishes = NO_WISHES
    """For memory policies, and how long the job waits for slots, beside ``timeout_s``."""

    # Of this worker. Workers of one job may differ.
    timeout_s: float = 30.0
    """Of joining: for the controller and for all other workers."""
    op_timeout_s: float = 30.0
    """A reduction fails when no chunk of it completes for so long."""
    host: str | None = None
    """Its IPv4 address towards the switch; None: the one that the routing table gives."""
    transport: TransportName = "auto"
    """``udp``; ``shm``, shared memory with a switch on this host; ``roce``, RoCEv2 by an RDMA
    device, or ``roce-soft``, in this process: both ask for mode ``roce`` where ``mode`` is empty;
    or ``auto``, shared memory where the switch offers it, else UDP, or RoCEv2 where the job's mode
    is that."""
    rdma: RdmaPatience | None = None
    """How long an RDMA device's reliable connections wait; None: as INA_RDMA_TIMEOUT_S and
    INA_RDMA_RETRIES say."""
    dscp: int | None = None
    """Of its packets, 0 to 63; None: its tenant's."""
    congestion: Congestion | None = None
    """How many packets are in flight; None: as the controller's configuration has it."""
    wire: str = "32"
    """How its float arrays travel where a call does not say: one of ina.protocol.coding.CODINGS."""
    threads: int = 0
    """That drive its packets, 1, 2, 4 or 8, fewer where fewer packets may be in flight, and one
    over shared memory; 0: one for each four cores, 1 to 4."""
    local_workers: int = 1
    """Workers of this host that share the cores."""
    recoverable: bool = False
    """Keep what :meth:`Session.freeze` needs, one packet's values for each lane."""
    on_failure: OnFailure | None = None
    """Called once, from a thread of the session, when the job cannot go on; if it returns True
    (having frozen the session, for instance), nothing fails. Of corrupted sums it is told where the
    session is recoverable."""
    controller_with_rank: int | None = None
    """The controller lives in that rank's process: when it has been silent for a lease, that rank
    is dead."""
    node: NodeOfHost | None = None
    """This rank's part in its host's node, which it sends to unless a switch is on this host."""
    aggregator: OwnAggregator | None = None
    """What rank 0 runs in mode ``shared`` where the controller has none."""
    stop: Stop | None = None
    """Ends joining from another thread (SessionClosedError)."""

    def __post_init__(self) -> None:
        """Check."""
        if not 0 < self.op_timeout_s <= MAX_OP_TIMEOUT_S:
            raise InvalidTicketError(
                f"op_timeout_s is {self.op_timeout_s:g}, must be above 0 and at most"
                f" {MAX_OP_TIMEOUT_S:g}"
            )
        check_transport("transport", self.transport)
        thread_counts.check_threads("threads", self.threads)
        if self.dscp is not None:
            checked_dscp("dscp", self.dscp)
        checked_coding("wire", self.wire)


USUAL = WorkerOptions()
