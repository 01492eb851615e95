"""Which pipe of the chip a worker is behind. Pure.

A Tofino's registers are a pipe's own: what enters by port 4 (pipe 0) and by port 130 (pipe 1) is
never summed in the same slot. So all workers of a job must be behind ports of one pipe.
"""

from __future__ import annotations

from collections.abc import Callable

from ina.controller.errors import JobPipesError
from ina.controller.jobs import Endpoint, Job

PipeOf = Callable[[int], int]
"""The pipe of a port's number."""


def one_pipe(port: int) -> int:
    """Of switches whose registers serve all their ports."""
    return 0


def check_same_pipe(job: Job, rank: int, endpoint: Endpoint, pipe_of: PipeOf) -> None:
    """Raises :class:`JobPipesError` if ``rank`` is in another pipe than those that have joined."""
    ports = {other: member.switch_port for other, member in job.members.items()}
    ports[rank] = endpoint.switch_port
    if len({pipe_of(port) for port in ports.values()}) == 1:
        return
    places = ", ".join(
        f"rank {who} behind port {port} (pipe {pipe_of(port)})"
        for who, port in sorted(ports.items())
    )
    raise JobPipesError(
        f"job {job.name!r}: its workers are in different pipes of the switch: {places}; a sum is in"
        " one pipe's registers, so all must be behind ports of the same pipe"
    )
