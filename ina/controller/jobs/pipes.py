"""Whether all that adds to a job's sums at a switch enters it by one pipe. Pure.

A Tofino's registers are a pipe's own: what enters by port 4 (pipe 0) and by port 130 (pipe 1) is
never summed in the same slot. Results of a parent touch no register, so their port may be anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from ina.controller.errors import JobPipesError
from ina.controller.job import Job
from ina.controller.switches.capacity import Capacity, PipeOf
from ina.trees.endpoint import Endpoint
from ina.trees.forest import Forest


def check_same_pipe(job: Job, rank: int, endpoint: Endpoint, pipe_of: PipeOf) -> None:
    """Raises :class:`JobPipesError` if ``rank`` is in another pipe than those that have joined."""
    ports = {other: member.at_switch.switch_port for other, member in job.members.items()}
    ports[rank] = endpoint.at_switch.switch_port
    _check(job, {f"rank {who}": port for who, port in sorted(ports.items())}, pipe_of)


def check_pipes(job: Job, over: Forest, switches: Mapping[str, Capacity]) -> None:
    """Raises :class:`JobPipesError` if children in a tree are in several pipes of their switch."""
    for tree in over:
        for node in tree.switches:
            joined = {rank: job.members[rank].switch_port for rank in node.ranks}
            ranks = {f"rank {rank}": node.port_of(rank, port) for rank, port in joined.items()}
            nodes = {
                (f"switch {it}" if tree[it].host is None else it): at
                for it, at in zip(node.nodes, node.ports, strict=True)
            }
            _check(job, ranks | nodes, switches[node.switch].pipe_of)


def _check(job: Job, ports: Mapping[str, int], pipe_of: PipeOf) -> None:
    if len({pipe_of(port) for port in ports.values()}) <= 1:
        return
    places = ", ".join(
        f"{who} behind port {port} (pipe {pipe_of(port)})" for who, port in ports.items()
    )
    raise JobPipesError(
        f"job {job.name!r}: its workers are in different pipes of the switch: {places}; a sum is in"
        " one pipe's registers, so all must be behind ports of the same pipe"
    )
