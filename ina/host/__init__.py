"""The worker's side: sessions that reduce NumPy arrays through the switch (see docs/host.md)."""

from ina import log
from ina.host.deferred import BlockHandle
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    CorruptedSumError,
    InvalidArrayError,
    InvalidTicketError,
    JobEndedError,
    JobEvictedError,
    JobFailedError,
    MembershipEndedError,
    OperationTimeoutError,
    RanksDifferError,
    RecoveryError,
    SessionClosedError,
    SessionFrozenError,
    SwitchLostError,
    TransportError,
    UnsupportedDtypeError,
    UnsupportedOpError,
    WorkerLostError,
    WorldSizeError,
)
from ina.host.handle import Handle
from ina.host.metrics import serve_metrics
from ina.host.options import WorkerOptions
from ina.host.rdma import RdmaPatience
from ina.host.session import Session
from ina.host.stats import SessionStats
from ina.host.ticket import Ticket
from ina.host.trees import one_switch
from ina.host.wishes import Wishes
from ina.protocol.peer import Peer

__all__ = [
    "BlockHandle",
    "ControllerError",
    "ControllerTimeoutError",
    "ControllerUnavailableError",
    "CorruptedSumError",
    "Handle",
    "InvalidArrayError",
    "InvalidTicketError",
    "JobEndedError",
    "JobEvictedError",
    "JobFailedError",
    "MembershipEndedError",
    "OperationTimeoutError",
    "Peer",
    "RanksDifferError",
    "RdmaPatience",
    "RecoveryError",
    "Session",
    "SessionClosedError",
    "SessionFrozenError",
    "SessionStats",
    "SwitchLostError",
    "Ticket",
    "TransportError",
    "UnsupportedDtypeError",
    "UnsupportedOpError",
    "Wishes",
    "WorkerLostError",
    "WorkerOptions",
    "WorldSizeError",
    "one_switch",
    "serve_metrics",
]

log.from_environ()
