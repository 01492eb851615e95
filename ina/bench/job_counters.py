"""What the controller tells of a job that is measured, and does for it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub

_TIMEOUT_S = 30.0
_REACHED_S = 60.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Summed:
    """Packets of a job of mode ``shared``."""

    summed: int
    """Added up at the switch, of those that ``came`` there."""
    came: int
    sums: int
    """Results."""
    got: int
    """That came to the aggregator for them."""


def await_connected(controller: str) -> None:
    """Until it has reached its switches and the aggregator.

    Raises InaError: it has not within ``_REACHED_S``; grpc.RpcError.
    """
    ends_s = time.monotonic() + _REACHED_S
    with open_channel(controller) as channel:
        while True:
            shown = OperatorStub(channel).ShowController(
                pb2.ShowControllerRequest(), timeout=_TIMEOUT_S
            )
            away = [it for it in shown.switches if it.state != "connected"]
            if not away:
                return
            if time.monotonic() >= ends_s:
                raise InaError(f"bench: {away[0].name} after {_REACHED_S:g} s: {away[0].state}")
            time.sleep(_POLL_S)


def show(controller: str, job: str) -> pb2.ShowJobReply:
    """Raises grpc.RpcError."""
    with open_channel(controller) as channel:
        return OperatorStub(channel).ShowJob(pb2.ShowJobRequest(name=job), timeout=_TIMEOUT_S)


def resize(controller: str, job: str, slots: int) -> pb2.Job:
    """Asks for so many; the job as it then is. Raises grpc.RpcError."""
    request = pb2.ResizeJobRequest(name=job, slots=slots)
    with open_channel(controller) as channel:
        return OperatorStub(channel).ResizeJob(request, timeout=_TIMEOUT_S).job


def nodes_of(controller: str, job: str) -> tuple[pb2.TreeNode, pb2.TreeNode]:
    """What the aggregator of a job and its only switch count.

    Raises InaError: they could not be read; grpc.RpcError.
    """
    root, switch = show(controller, job).tree
    for node in (root, switch):
        if node.unread:
            raise InaError(f"bench: counters of {node.switch} for job {job}: {node.unread}")
    return root, switch


def summed(controller: str, job: str) -> Summed:
    """Raises as :func:`nodes_of`."""
    root, switch = nodes_of(controller, job)
    alone = switch.collisions + switch.bypassed + switch.late + switch.missed
    return Summed(
        summed=switch.contributions,
        came=switch.contributions + alone,
        sums=root.results,
        got=root.contributions + root.duplicates + root.replays + root.stale,
    )
