"""The worker's side: sessions that reduce NumPy arrays through the switch (see docs/host.md)."""

from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    InvalidArrayError,
    InvalidTicketError,
    OperationTimeoutError,
    SessionClosedError,
    TransportError,
    UnsupportedDtypeError,
    UnsupportedOpError,
    WorldSizeError,
)
from ina.host.handle import Handle
from ina.host.session import Session
from ina.host.stats import SessionStats
from ina.host.ticket import Ticket

__all__ = [
    "ControllerError",
    "ControllerTimeoutError",
    "Handle",
    "InvalidArrayError",
    "InvalidTicketError",
    "OperationTimeoutError",
    "Session",
    "SessionClosedError",
    "SessionStats",
    "Ticket",
    "TransportError",
    "UnsupportedDtypeError",
    "UnsupportedOpError",
    "WorldSizeError",
]
