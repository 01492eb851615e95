"""What can go wrong with an emulation."""

from __future__ import annotations

from ina.errors import InaError
from ina.fabric.topology_json import TopologyError

__all__ = ["EmulationError", "JobFailedError", "TopologyError"]


class EmulationError(InaError):
    """The network could not be built, or a part of it stopped; the message says which."""


class JobFailedError(InaError):
    """A rank of the job ended with an error; the message has its host, exit code and log."""
